"""Of which host a text of a node's tools is: by what it says itself, never by guessing."""

from __future__ import annotations

import re

from topodiag.evidence.interface import Blob
from topodiag.evidence.signatures.wrappers import of_one_host
from topodiag.lazy import regex

_NAME = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,62}[A-Za-z0-9])?(?:\.[A-Za-z0-9][A-Za-z0-9-]{0,62}){0,6}"
_SAYS = (
    regex(rf"^SLURMD_NODENAME=({_NAME})\s*$", re.MULTILINE),
    regex(rf"^(?:HOSTNAME|Static hostname: {{0,8}}|\s{{0,20}}Static hostname:)[= ]({_NAME})\s*$", re.MULTILINE),
    regex(rf"^(?:\[[\w.-]{{1,32}}@|[\w.-]{{1,32}}@)({_NAME})(?:[: ][^\n\]]{{0,200}})?\]?[#$] ", re.MULTILINE),
    regex(rf"^({_NAME}):[~/][^\s$#]{{0,200}} ?[#$] (?=[a-z./])", re.MULTILINE),
    regex(rf"^\s{{0,8}}NodeName=({_NAME}) (?:Arch=|State=|CoresPerSocket=)", re.MULTILINE),
    regex(rf"^Linux ({_NAME}) \d{{1,2}}\.\d{{1,3}}\.", re.MULTILINE),
    regex(rf"^(?:[A-Z][a-z]{{2}} [ \d]\d |\d{{4}}-\d\d-\d\dT)[\d:]{{8}}\S{{0,16}} ({_NAME}) kernel: ", re.MULTILINE),
    regex(rf"^(?:[^\n]{{0,200}}/)?proc/sys/kernel/hostname[:=]? ?\n? ?({_NAME})\s*$", re.MULTILINE),
    regex(rf'<object type="Machine"(?:[^<]{{0,2000}}<){{1,60}}?info name="HostName" value="({_NAME})"'),
    # hwloc 3 writes what it says of the whole topology behind all objects.
    regex(
        rf'<info name="HostName" value="({_NAME})"/>'
        r"(?=\s{0,8}(?:<info [^<>]{1,400}/>\s{0,8}){0,40}</topology>)"
    ),
)  # fmt: skip
"""Where a text names its own host: the environment, hostnamectl, a shell's prompt, `uname -a`, syslog, hwloc."""
_METRICS = regex(
    rf'^[ \t]{{0,16}}(?:DCGM_[A-Z0-9_]{{1,80}}\{{[^\n}}]{{0,4000}}?\bHostname'
    rf'|node_uname_info\{{[^\n}}]{{0,4000}}?\bnodename)="({_NAME})"', re.MULTILINE
)  # fmt: skip
"""The same in metrics of the DCGM exporter and of the node exporter."""
_OF_POD = regex(r"[0-9a-f]{12}\Z|[a-z0-9.-]{0,200}dcgm-exporter")
"""What an exporter in a container takes for the name of its host."""
_NOBODY = {"localhost", "localhost.localdomain", "host", "node", "ubuntu", "(none)", "error", "warning", "note"}
_GPU = r"GPU-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_L = r"\n(?:[^\n]{0,200}\n)"
_IDS = (
    ("gpu", "GPU-", regex(rf"^GPU (\d{{1,3}}): [^\n]{{1,200}}\(UUID: ({_GPU})\)", re.M)),
    ("bus", "GPU-", regex(rf"^GPU ([\da-fA-F:.]{{12,16}}){_L}{{1,40}}?\s+GPU UUID\s+: ({_GPU})", re.M)),
    ("nic", "Node GUID", regex(rf"^CA '([\w.-]{{1,64}})'{_L}{{1,8}}?\s+Node GUID: (0x[0-9a-f]{{16}})", re.M)),
    ("nic", "hca_id", regex(rf"^hca_id:\s{{1,8}}([\w.-]{{1,64}}){_L}{{1,8}}?\s+node_guid:\s+([0-9a-f:]{{19}})", re.M)),
    ("", "GPU-", regex(rf"()({_GPU})")),
)  # fmt: skip
"""Serials and their devices, with what stands in each such text: `nvidia-smi -L` and `-q`, `ibstat`, `ibv_devinfo`; any
other UUID of a GPU."""
_MOST_IDS = 400


def host_of_text(blob: Blob) -> str:
    """The host that a text names as its own, "" where it names none or several."""
    text = blob.text
    label, _ = of_one_host(text)
    if label and not label.isdecimal():
        return label
    names = {match[1] for pattern in _SAYS for match in pattern.finditer(text)}
    if "DCGM_" in text or "node_uname_info{" in text:
        names |= {match[1] for match in _METRICS.finditer(text) if not _OF_POD.match(match[1])}
    named = {name for name in names if name.lower() not in _NOBODY}
    short = {name.split(".", 1)[0] for name in named}
    return min(named, key=len) if len(short) == 1 else ""


def host_of_log(head: bytes) -> str:
    """The host of the first record of NCCL's log, "" without one."""
    from topodiag.evidence.nccl_log.grammar.prefix import RECORD  # noqa: PLC0415 - where there is such a log

    match = RECORD.search(head.decode("utf-8", "replace"))
    return match[1] if match else ""


def ids_of_text(text: str) -> frozenset[tuple[str, str]]:
    """What only one machine has, as (device, serial): UUIDs of its GPUs, GUIDs of its adapters. Two texts that share a
    serial are of one host; two that give one device different serials are not."""
    return frozenset((device, serial) for _, device, serial in serials_of_text(text))


def serials_of_text(text: str, most: int = _MOST_IDS) -> list[tuple[int, str, str]]:
    """The same with the place of each in the text, in no order, where a serial stands first; at most so many."""
    counts: dict[tuple[str, str], int] = {}
    for kind, literal, pattern in _IDS:
        for match in pattern.finditer(text) if literal in text else ():
            serial = match[2].removeprefix("0x").replace(":", "").lower()
            counts.setdefault((f"{kind} {match[1].lower()}" if kind else "", serial), match.start())
            if len(counts) >= most:
                break
    return [(place, device, serial) for (device, serial), place in counts.items()]
