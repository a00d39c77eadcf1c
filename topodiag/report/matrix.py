"""The matrix: the path between every two GPUs, and from GPUs to NICs, as nvidia-smi or NCCL's definitions name it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from rich.text import Text

from topodiag.model.devices import Gpu, Nic, NicRole
from topodiag.model.finding import Finding
from topodiag.model.node import Node
from topodiag.report.text import Page
from topodiag.report.words import plural

MAX_GPUS = 16
"""GPUs drawn as a matrix; a rack-sized domain is told in a line instead."""
MAX_NICS = 32

_MEANING = {
    "NV#": "bonded NVLinks",
    "NVL": "NVLink",
    "NVB": "NVLink through a GPU",
    "C2C": "chip to chip",
    "PIX": "one PCIe switch",
    "PXB": "several PCIe switches",
    "PXN": "through a GPU near the NIC",
    "P2C": "chip to chip, then PCIe",
    "PHB": "through the CPU",
    "NODE": "between host bridges",
    "SYS": "across sockets",
}
_ORDER = ("NVL", "NVB", "C2C", "PIX", "PXB", "P2C", "PXN", "PHB", "NODE", "SYS")


@dataclass(frozen=True, slots=True)
class _Column:
    labels: tuple[str, ...]
    """The spellings under which the pairs of this device may stand."""
    title: str
    name: str


def path_word(node: Node, a: Sequence[str], b: Sequence[str]) -> str | None:
    """nvidia-smi's word for a pair where there is one, else the path type that was derived."""
    for first in a:
        for second in b:
            for pair in ((first, second), (second, first)):
                fact = node.smi_matrix.get(pair)
                if fact is not None and fact.value:
                    return fact.value
    for first in a:
        for second in b:
            path = node.paths.get((first, second)) or node.paths.get((second, first))
            if path is not None:
                return path.type.name
    return None


def nic_labels(nic: Nic) -> tuple[str, ...]:
    return tuple(dict.fromkeys(label for label in (nic.name, nic.rdma_name, nic.smi_label) if label))


def draw_matrix(page: Page, node: Node, findings: Sequence[Finding]) -> None:
    """GPUs by GPUs and, where they fit, NICs beside; else the NICs in blocks of their own below."""
    gpus = _columns_of_gpus(node.gpus)
    nics = _columns_of_nics(node)
    if not gpus or not any(_words(node, gpus, [*gpus, *nics])):
        return
    page.blank()
    if len(gpus) > MAX_GPUS:
        _tell(page, node, gpus, nics)
        return
    if len(gpus) == 1:
        gpu_columns: list[_Column] = []
    else:
        gpu_columns = gpus if any(_words(node, gpus, gpus)) else []
    drawn: set[str] = set()
    blocks = _blocks(page, node, gpus, gpu_columns, nics)
    for number, block in enumerate(blocks):
        if number:
            page.blank()
        drawn |= _draw_block(page, node, gpus, block, findings)
    _legend(page, drawn)


def _columns_of_gpus(gpus: Sequence[Gpu]) -> list[_Column]:
    return [_Column((gpu.label,), str(gpu.index), gpu.label) for gpu in gpus]


def _columns_of_nics(node: Node) -> list[_Column]:
    gpu_labels = [gpu.label for gpu in node.gpus]
    seen = [nic for nic in node.nics if any(path_word(node, [gpu], nic_labels(nic)) for gpu in gpu_labels[:MAX_GPUS])]
    if len(seen) > MAX_NICS:
        seen = [nic for nic in seen if nic.role is NicRole.COMPUTE][:MAX_NICS]
    prefix = _common_prefix([nic.name for nic in seen])
    return [_Column(nic_labels(nic), nic.name.removeprefix(prefix), nic.name) for nic in seen]


def _common_prefix(names: Sequence[str]) -> str:
    """What all names begin with, cut before a digit so that no number is torn; empty for fewer than two."""
    if len(names) < 2:
        return ""
    first, last = min(names), max(names)
    size = next((i for i, (x, y) in enumerate(zip(first, last, strict=False)) if x != y), min(len(first), len(last)))
    while size and (first[size - 1].isdigit() or any(len(name) <= size for name in names)):
        size -= 1
    return first[:size]


def _words(node: Node, rows: Sequence[_Column], columns: Sequence[_Column]) -> list[str]:
    found = (path_word(node, row.labels, column.labels) for row in rows for column in columns if row is not column)
    return [word for word in found if word]


@dataclass(frozen=True, slots=True)
class _Block:
    gpus: tuple[_Column, ...]
    nics: tuple[_Column, ...]
    cell: int


def _blocks(
    page: Page, node: Node, rows: Sequence[_Column], gpus: Sequence[_Column], nics: Sequence[_Column]
) -> list[_Block]:
    """The columns split into blocks that fit the width, NICs beside the GPUs when all of them fit."""
    words = _words(node, rows, [*gpus, *nics])
    widest = max((len(page.clean(text)) for text in [*words, *(c.title for c in (*gpus, *nics))]), default=3)
    cell = min(widest, 10) + 1
    label = max(len(row.name) for row in rows) + 1
    fit = max((page.width - label) // cell, 1)
    if gpus and nics and len(gpus) + len(nics) + 1 <= fit:
        return [_Block(tuple(gpus), tuple(nics), cell)]
    blocks = [_Block(tuple(gpus[i : i + fit]), (), cell) for i in range(0, len(gpus), fit)]
    blocks += [_Block((), tuple(nics[i : i + fit]), cell) for i in range(0, len(nics), fit)]
    return blocks


def _draw_block(
    page: Page, node: Node, rows: Sequence[_Column], block: _Block, findings: Sequence[Finding]
) -> set[str]:
    """Prints one block and says which words are in it."""
    legend: set[str] = set()
    label = max(len(row.name) for row in rows) + 1
    gap = " " * block.cell if block.gpus and block.nics else ""
    titles = Text(no_wrap=True)
    if block.gpus:
        titles.append_text(page.pad(page.text(("GPU", "dim")), block.cell * len(block.gpus)))
    titles.append(gap)
    if block.nics:
        prefix = block.nics[0].name.removesuffix(block.nics[0].title)
        titles.append_text(page.text((prefix or "NIC", "dim")))
    page.add(" " * label, page.cut(titles, page.width - label))
    heads = [page.pad(page.cut(page.text((c.title, "name")), block.cell - 1), block.cell) for c in block.gpus]
    heads.append(Text(gap))
    heads += [page.pad(page.cut(page.text((c.title, "name")), block.cell - 1), block.cell) for c in block.nics]
    page.add(" " * label, page.join(heads, ""))
    for row in rows:
        line = page.pad(page.text((row.name, "name")), label)
        for column in (*block.gpus, None, *block.nics):
            if column is None:
                line.append(gap)
                continue
            same = column.labels == row.labels
            word = "·" if same else path_word(node, row.labels, column.labels)
            if word and not same:
                legend.add(word)
            line.append_text(page.pad(page.cut(_cell(page, row, column, word, findings), block.cell - 1), block.cell))
        page.add("", line)
    return legend


def _cell(page: Page, row: _Column, column: _Column, word: str | None, findings: Sequence[Finding]) -> Text:
    if word is None:
        return page.text(("?", "dim"))
    if word == "·":
        return page.text(("-" if page.style.ascii else "·", "dim"))
    if _blamed(row, column, word, findings):
        return page.text((word + "!", "sick"))
    return page.text((word, hue_of(word)))


def hue_of(word: str) -> str:
    """The hue of a path type: green NVLink, cyan near, yellow through the CPU, dim across sockets."""
    if word.startswith("NV") or word == "C2C":
        return "nvlink"
    return {"PIX": "near", "PXB": "close", "P2C": "close", "PXN": "close", "PHB": "far", "NODE": "far"}.get(
        word, "remote"
    )


def _blamed(row: _Column, column: _Column, word: str, findings: Sequence[Finding]) -> bool:
    """Whether a finding names just this pair."""
    a, b = set(row.labels), set(column.labels)
    for finding in findings:
        where = finding.where
        if finding.id == "NVL004" and not word.startswith("NV"):
            blamed = set(where.gpus)
            if (a & blamed and b & blamed) or (len(blamed) == 1 and (a | b) & blamed and _is_gpu(row, column)):
                return True
        elif finding.id in {"NUM001", "GDR002"} and a & set(where.gpus) and b & set(where.nics):
            return True
    return False


def _is_gpu(*columns: _Column) -> bool:
    return all(column.name.startswith("GPU") for column in columns)


def _kind(word: str) -> str:
    return "NV#" if word.startswith("NV") and word[2:].isdigit() else word


def _legend(page: Page, words: set[str]) -> None:
    kinds = sorted({_kind(word) for word in words}, key=lambda kind: _ORDER.index(kind) if kind in _ORDER else -1)
    told = [f"{kind} {_MEANING[kind]}" for kind in kinds if kind in _MEANING]
    if told:
        page.add("", (" · ".join(told), "dim"))


def _tell(page: Page, node: Node, gpus: Sequence[_Column], nics: Sequence[_Column]) -> None:
    """A matrix too large to draw: how many pairs there are of each kind."""
    pairs = [(a, b) for i, a in enumerate(gpus) for b in gpus[i + 1 :]]
    kinds = Counter(word for a, b in pairs if (word := path_word(node, a.labels, b.labels)))
    told = ", ".join(f"{count} {word}" for word, count in kinds.most_common(6))
    page.add(page.text(("paths  ", "name")), f"{plural(len(gpus), 'GPU')}, {plural(len(pairs), 'pair')}: {told}")
    if nics:
        kinds = Counter(word for a in gpus for b in nics if (word := path_word(node, a.labels, b.labels)))
        page.add("       ", "to NICs: " + ", ".join(f"{count} {word}" for word, count in kinds.most_common(6)))
    page.add("       ", (f"more than {MAX_GPUS} GPUs: the matrix is in --format json", "dim"))
