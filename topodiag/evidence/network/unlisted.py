"""Requests for a node by an address that no node of the cluster has.

    Connecting to existing Ray cluster at address: 172.16.1.2:6379...
    No available node types can fulfill resource request {'node:203.0.113.225': 0.001, 'GPU': 1.0}

Each node of Ray offers a resource that is named for its address, and engines ask for the one of their own: an address
of another interface, or one behind a NAT, nobody offers. The request alone does not show it, as it also waits where
that node has too few GPUs: the text must name addresses of the cluster, and this one not among them.

SOURCE: Ray python/ray/_private/{node,services}.py, autoscaler/_private/event_summarizer.py; vLLM executor/ray_utils.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from topodiag.evidence.sentences import Together

MAX_LINE = 2000
_IP = r"(\d{1,3}(?:\.\d{1,3}){3})(?![\d.])"
_REQUEST = re.compile(
    r"\b(?:[Nn]o available node types can fulfill|[Cc]annot (?:be )?(?:fulfill|schedule)\w{0,2}|[Ii]nfeasible"
    r"|[Pp]ending|[Ww]aiting for)\b.{0,200}"
)
_ASKED = re.compile(rf"['\"]node:{_IP}['\"]")
_OFFERED = (
    re.compile(rf"\bRay (?:cluster|instance|head)\b.{{0,40}}\b(?:at|address)\b\D{{0,12}}{_IP}"),
    re.compile(rf"\b[Ll]ocal node IP: {{1,4}}{_IP}"),
    re.compile(
        rf"\b(?:[Hh]ead|[Ww]orker)(?: [Nn]odes?)? ?(?:IPs?|addr\w{{0,6}})?: {{1,4}}(?:[\d., ]{{7,200}}?, ?)?{_IP}"
    ),
    re.compile(rf"\bpid=\d{{1,9}}, ip={_IP}"),
    re.compile(rf"['\"]node:{_IP}['\"]: {{0,2}}1\.0\b"),
    re.compile(rf"\b\d\.\d{{1,4}}/1\.0 node:{_IP}"),
    re.compile(rf"\bNodeManagerAddress['\"]?[:=] ?['\"]?{_IP}"),
)
_LISTS = re.compile(r"\b(?:[Hh]ead|[Ww]orker)(?: [Nn]odes?)?\b.{0,12}: ")
_ANY_IP = re.compile(rf"(?<![\d.]){_IP}")
_OF_RAY = re.compile(
    rf"\b[Tt]his node has an IP address of {_IP}, (?:while|but|and) we can ?not find the matched Raylet address"
)


def unlisted(lines: Sequence[str]) -> Iterator[Together]:
    """Of lines numbered from 1: the first request for an address that the text shows nobody to have."""
    offered: set[str] = set()
    asked: dict[str, int] = {}
    for number, whole in enumerate(lines, 1):
        line = whole[:MAX_LINE]
        if "node" not in line and "ay " not in line and "ip=" not in line and "ode" not in line:
            continue
        own = _OF_RAY.search(line)
        if own is not None:
            yield Together("unlisted", number, f"{own[1]} is the address of no node that Ray knows")
            return
        request = _REQUEST.search(line)
        if request is not None:
            for found in _ASKED.finditer(line, request.start()):
                asked.setdefault(found[1], number)
            continue
        if line.lstrip().startswith("#"):
            continue  # a remark of whoever pastes it
        for pattern in _OFFERED:
            offered.update(found[1] for found in pattern.finditer(line))
        if _LISTS.search(line) is not None:
            offered.update(_ANY_IP.findall(line))
    for address, number in asked.items():
        if offered and address not in offered:
            others = ", ".join(sorted(offered)[:3])
            yield Together("unlisted", number, f"a request for the node {address}, and the cluster is at {others}")
            return


__all__ = ["unlisted"]
