"""The matrix: the path between every two GPUs, and from GPUs to NICs, as nvidia-smi or NCCL's definitions name it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import groupby

from rich.cells import cell_len
from rich.text import Text

from topodiag.hardware.catalog import gpu_by_name
from topodiag.lazy import dataclass
from topodiag.model.devices import Nic, NicRole
from topodiag.model.finding import Finding
from topodiag.model.maker import XGMI, dialect_of
from topodiag.model.nccl_enums import PathType
from topodiag.model.node import Node
from topodiag.model.provenance import Fact
from topodiag.report.text import Page
from topodiag.words.dialect import AMD, Dialect
from topodiag.words.own_data import own_data
from topodiag.words.units import plural

MAX_GPUS = 16
"""GPUs drawn as a matrix; a rack-sized domain is told in a line instead."""
MAX_NICS = 32


@dataclass(frozen=True, slots=True)
class _Column:
    labels: tuple[str, ...]
    """The spellings under which the pairs of this device may stand."""
    title: str
    name: str
    group: str = ""
    """What neighbouring columns' names begin with; it stands once above their titles."""


def path_word(node: Node, a: Sequence[str], b: Sequence[str]) -> str | None:
    """nvidia-smi's word for a pair where there is one, else the path type that was derived."""
    pairs = [pair for first in a for second in b for pair in ((first, second), (second, first))]
    for pair in pairs:
        fact = node.smi_matrix.get(pair)
        if fact is not None and fact.value:
            return fact.value
    path = next((node.paths[pair] for pair in pairs if pair in node.paths), None)
    if path is None:
        return None
    linked = path.type is PathType.NVL and dialect_of(node) is AMD
    return XGMI if linked else path.type.name


def nvlink_unseen(node: Node) -> bool:
    """Whether nothing in the evidence speaks of the NVLinks that these GPUs are built with."""
    if any(gpu.nvlinks or gpu.nvlink_note.known for gpu in node.gpus):
        return False
    if any(a.startswith("GPU") and b.startswith("GPU") for a, b in node.smi_matrix):
        return False
    specs = (gpu_by_name(gpu.name.value) for gpu in node.gpus if gpu.name.value)
    return any(spec is not None and spec.nvlinks for spec in specs)


def nic_labels(nic: Nic) -> tuple[str, ...]:
    return tuple(dict.fromkeys(label for label in (nic.name, nic.rdma_name, nic.smi_label) if label))


class _Grid:
    """The words between rows and columns, and which of them a finding names."""

    def __init__(
        self, node: Node, rows: Sequence[_Column], columns: Sequence[_Column], findings: Sequence[Finding]
    ) -> None:
        pairs = [(row, column) for row in rows for column in columns if row.name != column.name]
        self.words = {
            (row.name, column.name): word
            for row, column in pairs
            if (word := path_word(node, row.labels, column.labels))
        } or _peer_access(node, pairs)
        most = max((_bonded(word) or 0 for word in self.words.values()), default=0)
        self.blamed = {
            (row.name, column.name)
            for row, column in pairs
            if (word := self.words.get((row.name, column.name))) and _blamed(row, column, word, most, findings)
        }

    def cell(self, row: _Column, column: _Column) -> tuple[str, str]:
        """The text of a cell and its hue."""
        if column is _BETWEEN:
            return "", ""
        if row.name == column.name:
            return "-", "dim"
        word = self.words.get((row.name, column.name))
        if word is None:
            return "?", "dim"
        return (word + "!", "sick") if (row.name, column.name) in self.blamed else (word, hue_of(word))


def _peer_access(node: Node, pairs: Iterable[tuple[_Column, _Column]]) -> dict[tuple[str, str], str]:
    """The words of `nvidia-smi topo -p2p` where that is all that is known of pairs; of several tables the first."""
    table = next((table for table in node.p2p.values() if table), {})
    return {
        (row.name, column.name): word
        for row, column in pairs
        if (word := table.get((row.labels[0], column.labels[0]), Fact()).value)
    }


def draw_matrix(page: Page, node: Node, findings: Sequence[Finding]) -> None:
    """GPUs by GPUs and, where they fit, NICs beside; else the NICs in blocks of their own below."""
    gpus = [_Column((gpu.label,), str(gpu.index), gpu.label, "GPU") for gpu in node.gpus]
    nics = _columns_of_nics(node)
    if not gpus:
        return
    if len(gpus) > MAX_GPUS:
        _draw_counts(page, node, gpus, nics)
        return
    grid = _Grid(node, gpus, [*gpus, *nics], findings)
    if not grid.words:
        return
    page.blank()
    among = {gpu.name for gpu in gpus}
    between_gpus = any(column in among for _, column in grid.words)
    blocks = _blocks(page, grid, gpus, gpus if between_gpus else [], nics)
    for number, block in enumerate(blocks):
        if number:
            page.blank()
        _draw_block(page, grid, gpus, block)
    _legend(page, set(grid.words.values()), dialect_of(node), blamed=bool(grid.blamed))
    if between_gpus and nvlink_unseen(node):
        remark = "GPU to GPU is the distance over PCIe alone: these GPUs are built with NVLink, and it was not observed"
        page.add("", (remark, "doubtful"))


def _columns_of_nics(node: Node) -> list[_Column]:
    gpu_labels = [gpu.label for gpu in node.gpus]
    seen = [nic for nic in node.nics if any(path_word(node, [gpu], nic_labels(nic)) for gpu in gpu_labels[:MAX_GPUS])]
    # Ethernet without RDMA is in no one's matrix: it is drawn only where there is nothing better.
    seen = [nic for nic in seen if nic.rdma_name or _in_smi_matrix(node, nic)] or seen
    if len(seen) > MAX_NICS:
        seen = [nic for nic in seen if nic.role is NicRole.COMPUTE][:MAX_NICS]
    columns: list[_Column] = []
    for prefix, group in groupby(seen, key=lambda nic: _prefix(nic.name)):
        members = list(group)
        short = len(members) > 1
        for nic in members:
            title = nic.name.removeprefix(prefix) if short else nic.name
            columns.append(_Column(nic_labels(nic), title, nic.name, prefix if short else ""))
    return columns


def _in_smi_matrix(node: Node, nic: Nic) -> bool:
    labels = nic_labels(nic)
    return any(a in labels or b in labels for a, b in node.smi_matrix)


def _prefix(name: str) -> str:
    """What stands before the digits at the end: names that share it are told apart by their numbers."""
    stem = name.rstrip("0123456789")
    return stem if stem != name and len(name) - len(stem) < 4 else name


Block = list[tuple[_Column, int]]
"""Columns that stand beside each other, each with its width."""
_BETWEEN = _Column((), "", "")
"""The gap between GPUs and NICs."""


def _blocks(
    page: Page, grid: _Grid, rows: Sequence[_Column], gpus: Sequence[_Column], nics: Sequence[_Column]
) -> list[Block]:
    """The columns split into blocks that fit the width, NICs beside the GPUs when all of them fit."""
    room = page.width - max(len(row.name) for row in rows) - 1
    gpu_cell, nic_cell = _cell_width(page, grid, rows, gpus), _cell_width(page, grid, rows, nics)
    whole = [*((gpu, gpu_cell) for gpu in gpus), (_BETWEEN, gpu_cell), *((nic, nic_cell) for nic in nics)]
    if gpus and nics and sum(width for _, width in whole) <= room + 1:
        return [whole]
    blocks: list[Block] = []
    for columns, width in ((gpus, gpu_cell), (nics, nic_cell)):
        fit = max(room // width, 1)
        blocks += [[(column, width) for column in columns[i : i + fit]] for i in range(0, len(columns), fit)]
    return blocks


def _cell_width(page: Page, grid: _Grid, rows: Sequence[_Column], columns: Sequence[_Column]) -> int:
    texts = [grid.cell(row, column)[0] for row in rows for column in columns] + [column.title for column in columns]
    return min(max((cell_len(page.clean(text)) for text in texts), default=3), 10) + 1


def _draw_block(page: Page, grid: _Grid, rows: Sequence[_Column], block: Block) -> None:
    label = max(len(row.name) for row in rows) + 1
    titles = [
        _boxed(page, (group, "dim"), sum(width for _, width in columns))
        for group, columns in groupby(block, key=lambda cell: cell[0].group)
    ]
    page.add_line(page.text(" " * label, *titles))
    page.add_line(page.text(" " * label, *(_boxed(page, (column.title, "name"), width) for column, width in block)))
    for row in rows:
        cells = (_boxed(page, grid.cell(row, column), width) for column, width in block)
        page.add_line(page.text(page.pad(page.text((row.name, "name")), label), *cells))


def _boxed(page: Page, part: tuple[str, str], width: int) -> Text:
    """The text in a box of `width` columns with a blank at its end."""
    return page.pad(page.cut(page.text(part), width - 1), width)


def hue_of(word: str) -> str:
    """The hue of a path type: green NVLink, cyan below one switch, dim across sockets; what is usual has none."""
    if word.startswith("NV") or word == "C2C":
        return "nvlink"
    return {"PIX": "near", "PXB": "near", "P2C": "near", "PXN": "near", "SYS": "remote", "SOC": "remote"}.get(word, "")


def _blamed(row: _Column, column: _Column, word: str, most: int, findings: Sequence[Finding]) -> bool:
    """Whether a finding names just this pair; `most` is the largest bond in the matrix."""
    a, b = set(row.labels), set(column.labels)
    for finding in findings:
        where = finding.where
        if finding.id == "NVL001" and (_bonded(word) or most) < most and (a | b) & set(where.gpus):
            return True
        if finding.id == "NVL004" and not word.startswith("NV"):
            blamed = set(where.gpus)
            of_gpus = row.name.startswith("GPU") and column.name.startswith("GPU")
            if (a & blamed and b & blamed) or (len(blamed) == 1 and (a | b) & blamed and of_gpus):
                return True
        elif finding.id in {"NUM001", "GDR002"} and a & set(where.gpus) and b & set(where.nics):
            return True
    return False


def _bonded(word: str) -> int | None:
    """The links of a bond (`NV18` is 18); None for any other word."""
    digits = word[2:]
    return int(digits) if word.startswith("NV") and digits.isascii() and digits.isdigit() and len(digits) < 4 else None


def _legend(page: Page, words: set[str], dialect: Dialect, *, blamed: bool) -> None:
    kinds = {word if _bonded(word) is None else "NV#" for word in words}
    meanings = own_data("report/node/paths")["meaning"]
    texts = [f"{kind} {dialect.say(meanings[kind])}" for kind in meanings if kind in kinds]
    texts += ["! named by a finding"] if blamed else []
    page.add_items("", [(words, "dim") for words in texts])


def _draw_counts(page: Page, node: Node, gpus: Sequence[_Column], nics: Sequence[_Column]) -> None:
    """A matrix too large to draw: how many pairs there are of each kind."""
    page.blank()
    pairs = [(a, b) for i, a in enumerate(gpus) for b in gpus[i + 1 :]]
    kinds = Counter(word for a, b in pairs if (word := path_word(node, a.labels, b.labels)))
    words = ", ".join(f"{count} {word}" for word, count in kinds.most_common(6))
    page.add(page.text(("paths  ", "name")), f"{plural(len(gpus), 'GPU')}, {plural(len(pairs), 'pair')}: {words}")
    if nics:
        kinds = Counter(word for a in gpus for b in nics if (word := path_word(node, a.labels, b.labels)))
        page.add("       ", "to NICs: " + ", ".join(f"{count} {word}" for word, count in kinds.most_common(6)))
    page.add("       ", (f"more than {MAX_GPUS} GPUs: the matrix is in --format json", "dim"))
