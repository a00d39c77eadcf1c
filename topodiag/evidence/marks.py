"""What a description of a cluster looks like, by the first 64 KiB of its text. Light: no reader is loaded for it.

Whether a file is a dump of torch's flight recorder, by its first bytes.

What a file that says where ranks sit looks like, by the first 64 KiB of its text. Light: no reader is loaded.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from topodiag.evidence.kinds import Kind
from topodiag.lazy import regex
from topodiag.words.own_data import own_data, patterns

_TABLES = own_data("evidence/marks")
NODE, DOMAIN, LEVELS = (tuple(_TABLES[name]) for name in ("node", "domain", "levels"))
_LONGEST = 4096
"""Characters of a header that are looked at."""
COLUMNS = (*NODE, *DOMAIN, *LEVELS, "gpus", "free", "system", "gpu")

SWITCH = regex(r'Switch\s{1,20}\d{1,4}\s{1,20}"S-([0-9a-f]{1,16})"\s{0,40}#\s{1,20}"([^"]{0,200})"', re.ASCII)
_LIKE = patterns("evidence/marks", "like")
POD = patterns("evidence/marks", "pod")


def is_kubernetes(head: str) -> bool:
    """`kubectl get nodes -o json`, or a list of such objects."""
    return head.lstrip()[:1] == "{" and ('"items"' in head or _LIKE["node"].search(head) is not None)


def is_discover(head: str) -> bool:
    """`ibnetdiscover`."""
    return "switchguid=" in head or ('"S-' in head and SWITCH.search(head) is not None)


def is_linkinfo(head: str) -> bool:
    """`iblinkinfo`."""
    return "] ==( " in head


def is_slurm_conf(head: str) -> bool:
    """Slurm's topology.conf, or `scontrol show topology`."""
    lines = head.lower().split("\n") if "name=" in head.lower() else ()
    return any(line.lstrip().startswith(("switchname=", "blockname=")) for line in lines)


def is_slurm_yaml(head: str) -> bool:
    """Slurm's topology.yaml."""
    lines = head.split("\n") if "topology:" in head else ()
    return any("".join(line.split()).startswith("-topology:") for line in lines)


def is_csv(head: str) -> bool:
    """A header of known columns, one of which is the node."""
    first = next((line for line in head.splitlines() if line.strip() and not line.startswith("#")), "")
    first = first[:_LONGEST]
    cells = [cell.strip().strip('"').lower() for cell in first.split(delimiter(first))]
    if len(cells) < 2 or set(cells).isdisjoint(NODE) or sum(cell in COLUMNS for cell in cells) < 2:
        return False
    measured = any(word in f"{cell} " for cell in cells for word in _TABLES["measured"])
    return not (measured or set(_TABLES["times"]).intersection(cells))


def unread(head: str) -> str:
    """What a text is that is known and not read, and what to give instead; "" of any other."""
    return next((row["what"] for row in _TABLES["unread"] if all(map(head.__contains__, row["holds"]))), "")


def is_pods(head: str) -> bool:
    """Whether a text says of pods on which node they run, by its first 64 KiB."""
    if ("READY" in head and POD["header"].search(head)) or ("Successfully " in head and POD["scheduled"].search(head)):
        return True
    if "nodeName" in head and POD["object"].search(head):
        return True
    return "\nNode:" in f"\n{head}" and {"Name", "Node"} <= {match[1] for match in POD["described"].finditer(head)}


def cluster_format(head: str) -> Kind | None:
    """Whether a text describes a cluster, or which pods run on it. JSON counts as Kubernetes' only where it says so."""
    if is_kubernetes(head) and (_LIKE["node"].search(head) or ('"apiVersion"' in head and '"v1"' in head)):
        return Kind.PODS if POD["object"].search(head) else Kind.KUBERNETES
    if is_pods(head):
        return Kind.PODS
    if is_discover(head) or is_linkinfo(head) or is_slurm_yaml(head) or is_slurm_conf(head) or is_csv(head):
        return Kind.CLUSTER
    return None


def delimiter(header: str) -> str:
    """A comma, or what spreadsheets write in its place."""
    return max(",;\t", key=header.count)


FACTS_MARK = b"topodiag facts "
"""How facts of logs begin that `topodiag logs --save` kept."""
PICKLED = regex(rb"\x80[\x02-\x05]")
_KEYS = (b"pg_config", b"pg_status", b"nccl_version", b"collective_seq_id", b"entries")
_JSON = regex(rb'"(?:pg_config|pg_status)"\s*:\s*\{|"(?:collective_seq_id|p2p_seq_id)"\s*:\s*\d')


def looks_like_flight(head: bytes) -> bool:
    """Whether a file that starts like this is a dump: a pickle or JSON with keys of the format. Its name says nothing:
    TORCH_FR_DUMP_TEMP_FILE sets it."""
    if PICKLED.match(head):
        return any(key in head for key in _KEYS)
    return head.lstrip()[:1] == b"{" and _JSON.search(head) is not None


SIZE_NAMES: Mapping[str, str] = _TABLES["sizes"]
"""What files call the sizes of a job, by topodiag's names."""
_FEW = 400
"""Lines that are looked at."""


def layout_format(head: str) -> Kind | None:
    """Whether a text is a map, a rankfile, a hostfile, sizes, or groups of ranks. A bare list of hosts is a hostfile
    where it has two lines or more and every name holds a digit."""
    if _LIKE["map"].search(head):
        return Kind.RANK_MAP
    lines = [bare for line in head.split("\n", _FEW)[:_FEW] if (bare := line.partition("#")[0].strip())]
    if not lines:
        return None
    if len(lines) > 1 and len(head) >= 1 << 16:
        lines.pop()  # it may be cut
    if all(_LIKE["rank"].fullmatch(line) for line in lines):
        return Kind.RANKFILE
    if all(_LIKE["slots"].fullmatch(line) for line in lines):
        return Kind.HOSTFILE
    if len(lines) > 1 and all(_LIKE["numbered"].fullmatch(line) for line in lines):
        return Kind.HOSTFILE
    if ":" in head and _is_sizes(lines):
        return Kind.SIZES
    grouped = ("together" in head or "may_span" in head) and _LIKE["together"].search(head) is not None
    return Kind.GROUPS if grouped else None


def _is_sizes(lines: list[str]) -> bool:
    """Two sizes or more, and nothing that is none."""
    bare = [line.strip("{} \t") for line in lines if line.strip("{}, \t")]
    pairs = [part for line in bare for part in (line.split(",") if line.count(":") > 1 else [line]) if part.strip()]
    sizes = [_LIKE["size"].fullmatch(part.strip()) for part in pairs]
    names = [SIZE_NAMES.get(match[1].lower().replace("-", "_"), "") if match else "" for match in sizes]
    return all(names) and len(set(names) - {"order", "world"}) > 1
