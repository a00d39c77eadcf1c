"""How GPUs are joined, by nvidia-smi: each NVLink, and the path between every two devices.

`nvidia-smi nvlink -s, -e, -c, -R, -p, -gt`: state, rate, far end, abilities and counters of each NVLink.

One line-oriented reader for all options: every line says which link it is of, so the text needs no mode.

`nvidia-smi topo -m` (and `-mp`): the words between devices, the NICs' names, and each GPU's affinity; and
`nvidia-smi topo -p2p CAP`: whether the driver allows peer-to-peer between two GPUs, and why not.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from topodiag.evidence.draft import Entity, NodeDraft
from topodiag.evidence.interface import MAX_LINE, Blob, behind, reading, to_float
from topodiag.evidence.nvidia import smi_matrix as smi
from topodiag.evidence.nvidia.nvidia_words import as_tag, distinct_uuids, fill_lost
from topodiag.evidence.page import Line, OfPage, Page
from topodiag.model.busid import NVSWITCH_BUS_ID, normalise_bus_id
from topodiag.model.cpulist import parse_cpulist
from topodiag.model.provenance import NotObserved, Topic
from topodiag.words.own_data import own_data, patterns

MAX_LINKS = 64
"""Above NVML_NVLINK_MAX_LINKS (36 in nvml.h 13.3): a larger link number is a misread line."""
MAX_RECORDS = 400_000
"""A rack of 72 GPUs with 36 links and 40 lines on each is a quarter of this."""

COUNTERS: Mapping[str, str] = own_data("evidence/nvidia/names")["nvlink-counters"]
"""nvidia-smi's counter names (lower case, underscores) by the name the model uses; others keep their own."""

_LIKE = patterns("evidence/nvidia/lines", "nvlink")
_NOISE = ".[]…`~=-_*+ \t"
"""What a paste puts where lines were left out."""
_DECORATION = " \t#>`*\"'|"


class NvidiaSmiNvlink(OfPage):
    """Every option of `nvidia-smi nvlink`. Offers NVLink children of GPUs, and a note where there are none to show."""

    def read_page(self, page: Page) -> None:
        """Empty output is what a node without NVLink hardware gives (exit status 0): no records."""
        blob, draft = page.blob, page.draft
        fill_lost(blob, draft)
        # Of one GPU that was asked for, old drivers print no header.
        gpu = whole_number(behind(blob.item.command, "-i", "--id")) if blob.item else None
        inside = gpu is not None
        headers: list[tuple[int, str, Line]] = []
        for number, whole in blob.lines():
            line = Line(page, number, whole[:MAX_LINE].lstrip(_DECORATION).rstrip(" \t`\"'|,"))
            if len(page.parsed.records) >= MAX_RECORDS:
                line.leave("more lines than any node has: the rest is left out")
                break
            text = line.text
            bare = text.strip("[] ")
            if gpu is not None and (bare == "…" or (len(bare) > 2 and not bare.strip("."))):
                why = f"{blob.name} line {number} leaves lines out"
                draft.missing.append(NotObserved(f"some NVLinks of GPU{gpu}", why))
            elif not text.strip(_NOISE) or "nvidia-smi" in text:
                continue
            elif (header := _LIKE["gpu"].match(text)) is not None:
                gpu, inside = int(header[1]), True
                headers.append((gpu, header[3] or "", line))
                draft.gpu(index=gpu).offer("name", reading(header[2].strip()), line.origin)
            elif (link := _LIKE["link"].match(text)) is not None:
                _offer_link(line, gpu, link)
            elif gpu is not None and (note := _note(text.lower())):
                line.put(draft.gpu(index=gpu), nvlink_note=note)
            elif inside:
                line.leave("not a line of nvidia-smi nvlink")
        uuids = distinct_uuids((index, uuid) for index, uuid, _ in headers)
        for index, _, line in headers:
            draft.gpu(index=index, uuid=uuids.get(index)).offer("uuid", uuids.get(index), line.origin)


def _offer_link(line: Line, gpu: int | None, match: re.Match[str]) -> None:
    """Offer what a line says of a link."""
    number, pair = int(match[1]), _link_words(match[2].strip())
    if number >= MAX_LINKS:
        line.leave("no GPU has that many NVLinks")
    elif pair is None:
        line.leave("nothing known is said of this link")
    elif gpu is None:
        line.page.mark(line.number)
        line.leave("no GPU header stands above this link")
    else:
        link = line.page.draft.gpu(index=gpu).child("nvlink", number)
        line.put(link, **pair[0])
        for name, count in pair[1].items():
            line.count(link, name, count)


def _note(text: str) -> str:
    """What nvidia-smi says in place of the links of a GPU, "" in another line."""
    if "all links are inactive" in text:
        return "all links are inactive"
    return "not supported" if "nvlink" in text and "not supported" in text else ""


_Said = tuple[Mapping[str, Any], Mapping[str, int]]
"""Facts and counters."""


@lru_cache(maxsize=4096)
def _link_words(rest: str) -> _Said | None:
    """What the words behind `Link N:` say, or None when it is of no known shape. Nodes and links repeat the same few
    words by the thousand."""
    words = _LIKE["words"].fullmatch(rest)
    if words is None:
        return None
    if words["rate"]:
        rate = to_float(words["rate"], low=0.0, high=1e4)
        return ({"line_gbs": rate, "state": "active"} if rate else {}), {}
    if words["state"]:
        return {"state": words["state"].lower()}, {}
    if words["remote"]:
        bus_id = normalise_bus_id(words["remote"])
        kind = "switch" if bus_id == NVSWITCH_BUS_ID else None
        return None if bus_id is None else ({"remote_bus_id": bus_id, "remote_type": kind}, {})
    if words["ability"] or "BER" in words["counter"].split() or reading(words["count"]) is None:
        return {}, {}
    name = as_tag(f"{words['counter']} {words['unit'] or ''}")
    known = words["count"].isdecimal() and len(words["count"]) <= 20
    return ({}, {COUNTERS.get(name, name): int(words["count"])}) if known else None


CAPABILITIES = {"r": "read", "w": "write", "n": "nvlink", "a": "atomics", "p": "prop"}
"""Letters of `topo -p2p` by nvidia-smi's help; `prop` is the proprietary path over PCIe (NVML's PCI index)."""


def capabilities(arguments: str) -> tuple[str, ...]:
    """The capabilities that a command line asks for, e.g. `topo -p2p rw`; empty when it does not say."""
    letters = dict.fromkeys(behind(arguments, "-p2p", "--p2p_status"))
    names = [CAPABILITIES.get(letter, "") for letter in letters]
    return tuple(names) if all(names) else ()


def _offer_p2p(page: Page, matrix: smi.Matrix, asked: tuple[str, ...]) -> None:
    """Offer each cell under the capability that was asked for, or under `p2p:unknown`.

    A table for several capabilities at once says `OK` when all are there; its other words do not say which one is
    missing, so those stay under `p2p:unknown`.
    """
    gpu = page.draft.gpu
    for row in matrix.rows:
        for column, word in row.cells.items() if row.label.startswith("GPU") else ():
            if word in smi.P2P_WORDS and column.startswith("GPU"):
                known = asked if len(asked) == 1 or word == "OK" else ()
                for name in known or ("unknown",):
                    row.line.pair(f"p2p:{name}", word, gpu(index=int(row.label[3:])), gpu(index=int(column[3:])))


class NvidiaSmiTopo(OfPage):
    """The matrices. Offers `smi` pairs (`pcie` for `-mp`), NIC identities, affinities and NUMA nodes, and pairs in
    `p2p:read`, `p2p:nvlink`, ..., or `p2p:unknown` without a command."""

    def recognises(self, head: str) -> bool:
        if "GPU" not in head and "topology matrix" not in head:
            return False
        text = smi.read_matrices(Page(Blob("", head.encode(errors="replace")), NodeDraft()))
        shown = any(_is_topo(matrix) or _is_p2p(matrix) for matrix in text.matrices)
        return shown or any("fail" in note.lower() for note in text.notes)

    def read_page(self, page: Page) -> None:
        """Offer everything that the text's matrices say, whichever command printed them."""
        fill_lost(page.blob, page.draft)
        text = smi.read_matrices(page)
        owners = Counter(text.nics.values())
        names = {label: name for label, name in text.nics.items() if owners[name] == 1}
        argv = " ".join(page.blob.item.argv) if page.blob.item else ""
        for note in text.notes:
            page.draft.missing.append(NotObserved("the matrix of nvidia-smi topo", note, of=frozenset({Topic.GPUS})))
        for matrix in text.matrices:
            if matrix.is_p2p:
                _offer_p2p(page, matrix, capabilities(argv) or capabilities(matrix.command))
            elif _is_topo(matrix):
                # `topo -mp` leaves NVLink out.
                table = "pcie" if {"-mp", "--matrix_pci"} & {*(argv or matrix.command).split()} else "smi"
                for row in matrix.rows:
                    _fill_row(row, table, names)


def _is_topo(matrix: smi.Matrix) -> bool:
    """Whether this is NVIDIA's path matrix: `X` on a diagonal, and path words or affinity beside it."""
    if matrix.is_p2p or not any(row.has_self for row in matrix.rows):
        return False
    return any(row.cells or "cpu" in row.tail for row in matrix.rows)


def _is_p2p(matrix: smi.Matrix) -> bool:
    return matrix.is_p2p and any(row.has_self and row.label.startswith("GPU") for row in matrix.rows)


def _device(draft: NodeDraft, label: str, names: dict[str, str]) -> Entity:
    if label.startswith("GPU"):
        return draft.gpu(index=int(label[3:]))
    if label.startswith("NIC") and label[3:].isdigit():
        return draft.nic(label=label, rdma=names.get(label))
    return draft.nic(rdma=label)


def _fill_row(row: smi.MatrixRow, table: str, names: dict[str, str]) -> None:
    draft = row.line.page.draft
    device = _device(draft, row.label, names)
    for column, word in row.cells.items():
        if (value := smi.path_word(word)) is not None:
            row.line.pair(table, value, device, _device(draft, column, names))
    if row.label.startswith("GPU"):
        _fill_affinity(device, row)


def _fill_affinity(gpu: Entity, row: smi.MatrixRow) -> None:
    origin = row.line.origin
    if "cpu" in row.tail:
        cpus = reading(row.tail["cpu"])
        why = "nvidia-smi gives no CPU affinity" if cpus is None else f"not a CPU list: {cpus[:40]}"
        gpu.offer("cpu_affinity", cpus if parse_cpulist(cpus or "") else None, origin, why)
    if (numa := row.tail.get("numa")) is not None:
        gpu.offer("numa", first_node(numa), origin, f"nvidia-smi's NUMA affinity is {numa[:40] or 'empty'}")
    if "memory" in row.tail:
        gpu.offer("memory_numa", whole_number(row.tail["memory"]), origin)


def first_node(text: str) -> int | None:
    """The NUMA node of an affinity cell; None when it names none or spans several.

    On Grace the list is the CPU's node, then the memory-only nodes of its GPUs: `0,3-9,11-17` is node 0. A list that
    begins with a range (`0-1`) is close to all of them, so it places the GPU nowhere.
    """
    if not parse_cpulist(text):
        return None
    return whole_number(text.split(",", maxsplit=1)[0])


def whole_number(text: str) -> int | None:
    """A cell that is the number of one GPU or NUMA node, or None."""
    cleaned = text.strip()
    return int(cleaned) if cleaned.isascii() and cleaned.isdigit() and len(cleaned) <= 5 else None
