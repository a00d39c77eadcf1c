"""What a description of a cluster looks like, by the first 64 KiB of its text. Light: no reader is loaded for it."""

from __future__ import annotations

import re

from topodiag.evidence.kinds import Kind
from topodiag.lazy import regex

NODE = ("node", "host", "hostname", "name", "nodename")
DOMAIN = ("nvlink", "domain", "clique", "nvlink_domain")
LEVELS = ("leaf", "switch", "subblock", "rack", "block", "row", "cell", "spine", "pod", "group", "island", "core",
          "zone", "fabric")  # fmt: skip
"""In the usual order from the innermost; what the rows themselves show counts before that."""
_TIMES = frozenset({"time", "timestamp", "date", "datetime", "ts"})
_MEASURED = regex(r"temp|clock|util|ecc|error|_up$|state|status|bandwidth|gbps|mhz|throttl|slowdown|remap")
_LONGEST = 4096
"""Characters of a header that are looked at."""
COLUMNS = (*NODE, *DOMAIN, *LEVELS, "gpus", "free", "system", "gpu")

SWITCH = regex(r'Switch\s{1,20}\d{1,4}\s{1,20}"S-([0-9a-f]{1,16})"\s{0,40}#\s{1,20}"([^"]{0,200})"', re.ASCII)
_NODE_LIST = regex(r'"kind"\s{0,20}:\s{0,20}"Node(?:List)?"|"items"\s{0,20}:\s{0,20}\[')
_NODE_ITEMS = regex(r'"kind"\s{0,20}:\s{0,20}"Node(?:List)?"|"apiVersion"\s{0,20}:\s{0,20}"v1"')
_LINKINFO = regex(r"\] ==\( ")
_SWITCH_LINE = regex(r"^[ \t]*(?:switchname|blockname)=", re.IGNORECASE | re.MULTILINE)
_YAML_LINE = regex(r"^[ \t]*-[ \t]*topology:", re.MULTILINE)
_POD = r"[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?"
POD_HEADER = regex(r"^(?:NAMESPACE {1,200})?NAME {1,300}READY {1,20}STATUS [^\n]{0,300}\bIP {1,60}NODE\b", re.M)
POD_SCHEDULED = regex(
    rf"Successfully assigned (?:{_POD}/)?({_POD}) to ({_POD})(?![\w./-])"
    rf"|Successfully bound (?:pod )?(?:{_POD}/)?({_POD}) to (?:node )?({_POD})(?![\w./-])"
)
"""The event of kube-scheduler (pkg/scheduler/schedule_one.go), and that of Volcano."""
POD_DESCRIBED = regex(r"^(Name|Node|IP):[ \t]{1,60}(\S{1,300})[ \t]*$", re.M)
POD_OBJECT = regex(r'"kind"\s{0,20}:\s{0,20}"Pod(?:List)?"|^\s{0,8}(?:- )?kind: Pod(?:List)?\s*$', re.M)
POD_SPEC = regex(r'"?nodeName"?\s{0,9}:')


def is_kubernetes(head: str) -> bool:
    """`kubectl get nodes -o json`, or a list of such objects."""
    return head.lstrip()[:1] == "{" and _NODE_LIST.search(head) is not None


def is_discover(head: str) -> bool:
    """`ibnetdiscover`."""
    return "switchguid=" in head or SWITCH.search(head) is not None


def is_linkinfo(head: str) -> bool:
    """`iblinkinfo`."""
    return _LINKINFO.search(head) is not None


def is_slurm_conf(head: str) -> bool:
    """Slurm's topology.conf, or `scontrol show topology`."""
    return _SWITCH_LINE.search(head) is not None


def is_slurm_yaml(head: str) -> bool:
    """Slurm's topology.yaml."""
    return "topology:" in head and _YAML_LINE.search(head) is not None


def is_csv(head: str) -> bool:
    """A header of known columns, one of which is the node."""
    first = next((line for line in head.splitlines() if line.strip() and not line.startswith("#")), "")
    first = first[:_LONGEST]
    cells = [cell.strip().strip('"').lower() for cell in first.split(delimiter(first))]
    if len(cells) < 2 or set(cells).isdisjoint(NODE) or sum(cell in COLUMNS for cell in cells) < 2:
        return False
    return not (_TIMES.intersection(cells) or any(map(_MEASURED.search, cells)))  # what was measured


def is_pods(head: str) -> bool:
    """Whether a text says of pods on which node they run, by its first 64 KiB."""
    if POD_HEADER.search(head) or POD_SCHEDULED.search(head):
        return True
    if POD_OBJECT.search(head) and POD_SPEC.search(head):
        return True
    return {"Name", "Node"} <= {match[1] for match in POD_DESCRIBED.finditer(head)} and "\nNode:" in f"\n{head}"


def cluster_format(head: str) -> Kind | None:
    """Whether a text describes a cluster, or which pods run on it. JSON counts as Kubernetes' only where it says so."""
    if is_kubernetes(head) and _NODE_ITEMS.search(head):
        return Kind.PODS if POD_OBJECT.search(head) else Kind.KUBERNETES
    if is_pods(head):
        return Kind.PODS
    if is_discover(head) or is_linkinfo(head) or is_slurm_yaml(head) or is_slurm_conf(head) or is_csv(head):
        return Kind.CLUSTER
    return None


def delimiter(header: str) -> str:
    """A comma, or what spreadsheets write in its place."""
    return max(",;\t", key=header.count)
