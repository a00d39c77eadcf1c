"""`nvidia-smi topo -m` (and `-mp`): the words between devices, the NICs' names, and each GPU's affinity; and
`nvidia-smi topo -p2p CAP`: whether the driver allows peer-to-peer between two GPUs, and why not.
"""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

from topodiag.evidence.draft import Entity, NodeDraft
from topodiag.evidence.interface import Blob, reading
from topodiag.evidence.nvidia import smi_matrix as smi
from topodiag.evidence.nvidia.nvidia_words import fill_lost
from topodiag.evidence.page import OfPage, Page
from topodiag.model.cpulist import parse_cpulist
from topodiag.model.provenance import NotObserved
from topodiag.model.topics import Topic

CAPABILITIES = {"r": "read", "w": "write", "n": "nvlink", "a": "atomics", "p": "prop"}
"""Letters of `topo -p2p` by nvidia-smi's help; `prop` is the proprietary path over PCIe (NVML's PCI index)."""


def capabilities(arguments: str) -> tuple[str, ...]:
    """The capabilities that a command line asks for, e.g. `topo -p2p rw`; empty when it does not say."""
    words = arguments.replace("=", " ").split()
    letters = next((letters for option, letters in pairwise(words) if option in ("-p2p", "--p2p_status")), "")
    return (
        tuple(CAPABILITIES[letter] for letter in dict.fromkeys(letters)) if set(letters) <= CAPABILITIES.keys() else ()
    )


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
        gpu.offer("memory_numa", single_node(row.tail["memory"]), origin)


def first_node(text: str) -> int | None:
    """The NUMA node of an affinity cell; None when it names none or spans several.

    On Grace the list is the CPU's node, then the memory-only nodes of its GPUs: `0,3-9,11-17` is node 0. A list that
    begins with a range (`0-1`) is close to all of them, so it places the GPU nowhere.
    """
    if not parse_cpulist(text):
        return None
    return single_node(text.split(",", maxsplit=1)[0])


def single_node(text: str) -> int | None:
    """A cell that is one NUMA node number, or None."""
    cleaned = text.strip()
    return int(cleaned) if cleaned.isascii() and cleaned.isdigit() and len(cleaned) <= 5 else None
