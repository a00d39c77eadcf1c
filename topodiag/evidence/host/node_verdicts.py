"""What agents write into a node of Kubernetes: labels and conditions whose value is a verdict of the hardware.

    Labels:  autopilot.ibm.com/dcgm.level.3=ERR_2024-11-04_09.32.03UTC_page_retirement_row_remap.0
             autopilot.ibm.com/gpuhealth=EVICT
    Conditions:
      AcceleratedHardwareReady  False  DCGMHealthCode48  DCGM detected issues in health check system

The forms are those of `kubectl describe node`, of `get nodes --show-labels`, and of a node in YAML and JSON.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from topodiag.evidence.host.reasons import part_of

MAX_LABELS = 400
_KEY = r"(?:[a-z0-9-]{1,40}\.){1,5}[a-z]{2,20}/[\w.-]{1,63}"
_VALUE = r"[A-Za-z][\w.-]{0,200}"
_LINE = re.compile(
    rf"\s{{0,40}}(?:(?:Labels|Taints|Annotations):\s{{1,20}})?\"?({_KEY})\"?(?:=|: {{1,4}})\"?({_VALUE})\"?"
    r"(?:,|:(?:NoSchedule|NoExecute|PreferNoSchedule))?\s{0,8}"
)
_JOINED = re.compile(rf"(?:^|[\s,])({_KEY})=({_VALUE})")
_OF_A_NODE = "kubernetes.io/hostname="
"""A label that each node has: what is joined with it are its labels, and no selector of a command."""
_ILL = re.compile(
    r"(?:ERR(?:OR)?|EVICT|FAIL(?:ED|URE)?|UNHEALTHY|BAD|FAULTY?|CRITICAL|FATAL|DEGRADED|NOT[_-]?(?:OK|HEALTHY|READY))"
    r"(?:[._-]|\Z)",
    re.IGNORECASE,
)
_HARDWARE = re.compile(
    r"gpu|dcgm|nv-?link|pcie?|\bhbm|\becc|\bnics?\b|rdma|infiniband|\bib\b|roce|health|hardware|accelerat|xid",
    re.IGNORECASE,
)
_POLICY = re.compile(r"policy|action|strategy|upgrade|deploy|\bmig\b|evict|drain|mode|\bon-|config", re.IGNORECASE)
"""Keys of what is to be done, and of the operator's own work on a node."""
_MEMORY_TEST = re.compile(r"dcgm.{0,160}[_.-]mem(?:ory|test)?(?:[_.-]\d|\Z|_bandwidth)", re.IGNORECASE)
_CONDITION = re.compile(r"\s{1,8}([A-Z]\w{2,60})\s{1,60}(True|False)\s{1,60}(\S.{0,600})")
_SHOULD_BE_TRUE = re.compile(r"(?:Ready|Health|Healthy|OK|Ok|Available)\Z")
_SHOULD_BE_FALSE = re.compile(
    r"(?:Errors?|Problem|Failure|Failed|Unhealthy|NotReady|NotHealthy|Degraded|Lost|Down|Faulty?|Fatal)\Z"
)

_COUNTED = re.compile(r"\bcount(?:er|s)?\b|\bsince (?:the )?(?:driver|boot|last)\b", re.IGNORECASE)
"""A total since the driver was loaded, which some agents take for a fault whatever it is."""


def verdicts(line: str) -> Iterator[tuple[str, str]]:
    """The part at fault, "" where none is named, and the words, for each verdict on a line that is ill."""
    found = _LINE.fullmatch(line)
    labels = [(found[1], found[2])] if found is not None else []
    if not labels and _OF_A_NODE in line:
        labels = _JOINED.findall(line)[:MAX_LABELS]
    for key, value in labels:
        if _ILL.match(value) and _HARDWARE.search(key) and _POLICY.search(key) is None:
            yield _part(f"{key} {value}"), f"the label {key}={value}"
    if (told := _CONDITION.match(line)) is not None and _HARDWARE.search(told[1]):
        wanted = _SHOULD_BE_TRUE if told[2] == "False" else _SHOULD_BE_FALSE
        opposite = told[2] == "False" and _SHOULD_BE_FALSE.search(told[1]) is not None  # `NotReady` is not so
        if wanted.search(told[1]) and not opposite:
            said = " ".join(told[3].split())
            part = "" if _COUNTED.search(said) is not None else _part(f"{told[1]} {said}")
            yield part, f"the condition {told[1]} ({told[2]}): {said[-160:]}"


def is_well(line: str) -> bool:
    """Whether a line is a condition that says that all is well: `NvlinkFailure  False  ...`."""
    told = _CONDITION.match(line)
    if told is None:
        return False
    not_ill = _SHOULD_BE_FALSE if told[2] == "False" else _SHOULD_BE_TRUE
    return not_ill.search(told[1]) is not None and (told[2] == "False" or _SHOULD_BE_FALSE.search(told[1]) is None)


def _part(words: str) -> str:
    return "gpu-memory" if _MEMORY_TEST.search(words) else part_of(words.replace("_", " "))


__all__ = ["is_well", "verdicts"]
