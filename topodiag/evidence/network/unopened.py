"""RDMA devices that sysfs lists in a terminal and that no program of that terminal can open.

    $ ls /sys/class/infiniband        $ ls /dev/infiniband/        $ ibv_devices
    mlx5_0  mlx5_1                    rdma_cm  uverbs0                 mlx5_0    b83fd20300a1f2c4

sysfs shows the host's devices in a container, too; what can be opened are the nodes below /dev. Only listings behind
one prompt are compared: a pod has fewer than its host by design.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from topodiag.evidence.pasted_files import LOOSE_PROMPT
from topodiag.evidence.sentences import Together

MAX_LINE = 1000
MAX_LISTED = 64
"""Lines of one listing that are read."""
_ASKED = re.compile(
    rf"(?P<prompt>{LOOSE_PROMPT})?(?:sudo )?(?:"
    r"ls(?: -[A-Za-z0-9]{1,8})? (?P<sys>/sys/class/infiniband/?)|ls(?: -[A-Za-z0-9]{1,8})? (?P<dev>/dev/infiniband/?)"
    r"|(?P<verbs>ibv_devices))\s*\Z"
)
_PROMPT = re.compile(rf"{LOOSE_PROMPT}\S")
_DEVICE = re.compile(r"\b(?:mlx[45]|mthca|bnxt_re|i?rdmap?|erdma|efa|hns|ionic|qedr|roce[op]|ib[ops])\w{1,24}")
"""Software RDMA (rxe, siw) has its node like any other, and is nobody's loss."""
_NODE = re.compile(r"uverbs\d{1,4}")
_VERBS_ROW = re.compile(r"\s{1,12}(\w{2,40})\s{1,24}[0-9a-f]{16}\s*\Z")


def unopened(lines: Sequence[str]) -> Iterator[Together]:
    """Of lines numbered from 1: listings of /dev or of verbs with fewer devices than sysfs lists behind that prompt."""
    listed: dict[str, set[str]] = {}
    for number, whole in enumerate(lines, 1):
        asked = _ASKED.match(whole) if "infiniband" in whole or "ibv_devices" in whole else None
        if asked is None or len(whole) > MAX_LINE:
            continue
        prompt = re.split(r"[:#$ ]", asked["prompt"] or "", maxsplit=1)[0]
        rows = _listing(lines[number : number + MAX_LISTED])
        if asked["sys"]:
            listed[prompt] = {name for row in rows for name in _DEVICE.findall(row.partition(" -> ")[0])}
            continue
        there = _openable(rows, bool(asked["dev"]))
        seen = listed.get(prompt, set())
        if there is not None and len(there) < len(seen):
            where = "/dev/infiniband has a node for" if asked["dev"] else "ibv_devices lists"
            words = f"/sys/class/infiniband lists {len(seen)} RDMA devices, and {where} {len(there)} of them"
            yield Together("devices", number, words)
            return


def _listing(lines: Sequence[str]) -> list[str]:
    """What a command printed: up to the next prompt."""
    rows: list[str] = []
    for line in lines:
        if len(line) > MAX_LINE or _PROMPT.match(line):
            break
        rows.append(line)
    return rows


def _openable(rows: Sequence[str], of_nodes: bool) -> set[str] | None:
    """What can be opened; None where the command failed, or printed nothing that is known."""
    if of_nodes:
        shown = [row for row in rows if re.search(r"\b(?:uverbs|rdma_cm|umad|issm)", row) is not None]
        return {name for row in shown for name in _NODE.findall(row)} if shown else None
    names = {row[1] for each in rows if (row := _VERBS_ROW.match(each)) is not None}
    return names or None


__all__ = ["unopened"]
