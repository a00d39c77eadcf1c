"""Reads the device matrices that `nvidia-smi topo` prints, from clean output or from what people paste.

One reader for `topo -m`, `topo -mp` and `topo -p2p CAP`, because they are one shape with different words. It does not
say what the words mean for a link; the sources do.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field

from topodiag.evidence.page import Line, Page
from topodiag.lazy import dataclass
from topodiag.words.own_data import patterns

PATH_WORDS = frozenset({"PIX", "PXB", "PHB", "NODE", "SYS"})
"""Path levels of `topo -m`, nvidia-smi's own legend; `NV#` is matched apart."""
OLD_PATH_WORDS = {"SOC": "SYS", "PSB": "PIX"}
"""Words of drivers before 2018: SOC became SYS; PSB is the one PCIe switch on a dual-GPU board (Tesla K80)."""
P2P_WORDS = frozenset({"OK", "CNS", "GNS", "TNS", "NS", "DR", "U"})
"""Status words of `topo -p2p`, nvidia-smi's own legend."""

MAX_COLUMNS = 512
"""Far above the widest known table (72 GPUs beside 56 NICs); a wider one is not a matrix."""
MAX_ROWS = 1024
MAX_MATRICES = 64
MAX_CELLS = 400_000
"""Over all matrices of a text: twenty of the widest."""
MAX_NOTES = 4096
MAX_LINE = 32768

_LIKE = patterns("evidence/nvidia/lines", "matrix")
_TAIL = {"CPU": "cpu", "GPU": "memory"}
"""Columns of affinity by the first word of their names; those of any other are of NUMA nodes."""
_DECORATION = " \t#>`*\"'$\u00a0"


@dataclass(frozen=True, slots=True)
class MatrixRow:
    """One row: words by column label (the self cell left out), and the affinity cells as they stand: `cpu`, `numa`,
    `memory`."""

    label: str
    line: Line
    cells: Mapping[str, str]
    tail: Mapping[str, str]
    has_self: bool = False
    """Whether the cell of the row's own column is `X`."""


@dataclass(slots=True)
class Matrices:
    """The matrices of a text. `nics` are the RDMA devices that columns stand for, by the legend; `notes` sentences of
    nvidia-smi about the matrix: that it failed, or that it leaves NICs out."""

    matrices: list[Matrix] = field(default_factory=list)
    nics: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def read_matrices(page: Page) -> Matrices:
    """Every matrix, NIC name and note of the text; never raises."""
    read = Matrices()
    tables: list[Matrix] = []
    table: Matrix | None = None
    command, notes, cells = "", 0, 0
    for number, raw in page.blob.lines():
        text = _LIKE["colours"].sub("", raw[:MAX_LINE]).replace("\\t", "\t")
        text = _unpiped(text) if text.count("|") > 2 else text
        bare = text.strip(_DECORATION)
        asked = " ".join(text.split()).partition("nvidia-smi topo ")[2] if "nvidia-smi" in text else ""
        nic = _nic(bare)
        if asked:
            table, command = None, asked[:120]
        elif nic is not None or _LIKE["notes"].search(bare) is not None:
            notes += 1
            if notes > MAX_NOTES:
                continue
            page.parsed.records.append(number)
            if nic is not None:
                read.nics.setdefault(*nic)
            else:
                read.notes.append(bare[:200])
        elif (header := _header(text)) is not None:
            table = Matrix(Line(page, number, " ".join(header[0])[:200]), *header, command)
        elif table is not None and (row := _plain_cells(table, text)) is not None:
            cells += table.add(Line(page, number, bare[:200]), *row, full=cells > MAX_CELLS)
            if table.rows and table not in tables[-1:]:
                tables.append(table)
                command = ""  # it is that of one table
    read.matrices += filter(Matrix.is_whole, tables[:MAX_MATRICES])
    return read


def _nic(text: str) -> tuple[str, str] | None:
    """The column of a NIC and its RDMA device in a line of the legend, None for another line."""
    label, _, name = (part.strip() for part in text.rstrip(",`\"'").partition(":"))
    is_nic = label.startswith("NIC") and label[3:].isdecimal() and len(label) < 8 and name[:1].isalpha()
    return (f"NIC{int(label[3:])}", name[:64]) if is_nic else None


@dataclass(slots=True, eq=False)
class Matrix:
    """One table: the line of its header, the labels of its columns, and which columns of affinity follow. `command` has
    the arguments of an `nvidia-smi topo` line that stands before it, if any; `torn` says why no row can be trusted."""

    line: Line
    labels: tuple[str, ...]
    tail: tuple[str, ...]
    command: str
    rows: list[MatrixRow] = field(default_factory=list)
    torn: str = ""

    def add(self, line: Line, label: str, cells: list[str], tail: dict[str, str], *, full: bool) -> int:
        """Take a row with the cells that can be; an impossible cell is left out, and said. How many cells it has."""
        if not any(_is_path_word(word) for word in cells):
            return 0
        if any(row.label == label for row in self.rows):
            line.leave(f"a second row of {label}")
            return 0
        if full or len(self.rows) >= MAX_ROWS:
            line.leave("more rows than any node has")
            return 0
        own = self.labels.index(label) if label in self.labels else -1
        has_self = 0 <= own < len(cells) and cells[own] == "X"
        if own >= 0 and not has_self and "X" in cells and len(cells) < len(self.labels):
            self.torn = self.torn or f"cells of {label} are missing, so the others cannot be placed"
        good: dict[str, str] = {}
        for column, word in zip(self.labels, cells, strict=False):
            if column == label:
                continue
            if word == "X":
                self.torn = self.torn or f"X for {label} and {column}, which are not the same device"
            elif _is_path_word(word):
                good[column] = word
            elif word:
                line.leave(f"unknown word {word[:20]!r} for {label} and {column}")
        self.rows.append(MatrixRow(label, line, good, tail, has_self))
        return len(cells)

    @property
    def is_p2p(self) -> bool:
        """Whether its words are those of `topo -p2p`."""
        words = [word for row in self.rows for word in row.cells.values()]
        return 2 * sum(word in P2P_WORDS for word in words) > len(words)

    def is_whole(self) -> bool:
        """Whether it can be used; left with the reason where it cannot."""
        if why := self.torn or _contradiction(self.rows):
            self.line.leave(f"the matrix is not used: {why}")
        else:
            self.line.page.parsed.records.append(self.line.number)
        return not why


def path_word(word: str) -> str | None:
    """A path word in today's spelling (`SOC` is `SYS`), or None when it is not one."""
    if word in PATH_WORDS or (word.startswith("NV") and word[2:].isdecimal()):
        return word
    return OLD_PATH_WORDS.get(word)


def _is_path_word(word: str) -> bool:
    return word == "X" or word in P2P_WORDS or path_word(word) is not None


def _unpiped(line: str) -> str:
    """A row of a Markdown table as nvidia-smi has it: label first, affinity columns that stood before it last."""
    cells = [cell.strip() for cell in line.strip().strip("|").split("|", MAX_COLUMNS + 8)]
    first = next((at for at, cell in enumerate(cells) if _LIKE["label"].fullmatch(cell)), 0)
    return "\t".join((*cells[first:], *cells[:first]))


def _labels(text: str) -> tuple[str, ...] | None:
    """The device labels of a header, with or without blanks between them; None when a word is no label."""
    labels: list[str] = []
    for word in text.split(maxsplit=MAX_COLUMNS):
        glued = _LIKE["glued_labels"].findall(word)
        if len(glued) > 1 and "".join(glued) == word:
            labels += glued
        elif _LIKE["label"].fullmatch(word):
            labels.append(word)
        else:
            return tuple(labels) if word in ("CPU", "NUMA", "GPU") else None
    return tuple(labels)


def _header(line: str) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """The labels of a header, and the affinity columns that it names; None for another line."""
    stripped = line.lstrip(_DECORATION)
    if not stripped.startswith("GPU") or any(_is_path_word(word) for word in stripped.split(maxsplit=MAX_COLUMNS)):
        return None  # a row, though one of its cells may read like the head of a column
    tail = list(_LIKE["tail"].finditer(line))
    labels = _labels(line[: tail[0].start()].strip(_DECORATION) if tail else stripped.rstrip(_DECORATION))
    if not labels or not labels[0].startswith("GPU") or len(labels) > MAX_COLUMNS or len(set(labels)) != len(labels):
        return None
    return labels, tuple(_TAIL.get(match[0][:3].upper(), "numa") for match in tail[:8])


def _plain_cells(header: Matrix, line: str) -> tuple[str, list[str], dict[str, str]] | None:
    """Label, cells in column order and affinity cells of a row in nvidia-smi's layout; None when it is no row."""
    offset = len(line) - len(line.lstrip(_DECORATION))
    text = line[offset:].rstrip("`\"'\r\n")
    count = len(header.labels)
    if text.count("\t") >= count:
        fields = [field.strip() for field in text.split("\t", count + 12)]
        if "\t\t" in text and not _placed(fields, header.labels):
            joined = [field.strip() for field in re.split(r"\t{1,64}", text, maxsplit=count + 12)]
            fields = joined if _placed(joined, header.labels) else fields
        if _is_row(header, fields) and not any(len(field.split()) > 1 for field in fields[: count + 1]):
            return fields[0], fields[1 : count + 1], _tabbed_tail(header, fields[count + 1 :])
    words = text.split(maxsplit=count + 12)
    if not _is_row(header, words):
        return None
    # Of a row aligned by blanks where an affinity cell is empty, nobody can say which cell is whose.
    whole = len(words) == count + 1 + len(header.tail)
    tail = dict(zip(header.tail, words[count + 1 :], strict=True)) if whole else {}
    return words[0], words[1 : count + 1], tail


def _is_row(header: Matrix, words: list[str]) -> bool:
    if len(words) < 2 or not _LIKE["label"].fullmatch(words[0]):
        return False
    if words[0] in header.labels:
        return True
    following = [word for word in words[1 : len(header.labels) + 1] if word]
    if words[0][:3] in ("GPU", "NIC"):
        return bool(following) and _is_path_word(following[0])
    return len(following) == len(header.labels) and all(_is_path_word(word) for word in following)


def _tabbed_tail(header: Matrix, fields: list[str]) -> dict[str, str]:
    """Affinity cells by name. nvidia-smi writes an empty field before `GPU NUMA ID`: surplus empty ones are dropped."""
    surplus = len(fields) - len(header.tail)
    for at in range(len(fields) - 1, -1, -1):
        if surplus > 0 and fields[at] == "":
            del fields[at]
            surplus -= 1
    return dict(zip(header.tail, fields, strict=False)) if len(fields) >= len(header.tail) else {}


_PCI_PATHS = PATH_WORDS | OLD_PATH_WORDS.keys()
"""Words for a path over PCIe, which is the same in both directions."""


def _contradiction(rows: Iterable[MatrixRow]) -> str:
    """A matrix that contradicts itself was torn or edited: which half of it is right nobody can say, so none of it is
    used. The first pair of devices of which two rows say different paths; "" for none.
    Counts of NVLinks may differ between the two directions: that is a fault of the machine, and not of the matrix."""
    words = {(row.label, column): word for row in rows for column, word in row.cells.items()}
    for (label, column), word in words.items():
        back = words.get((column, label))
        if back is None or back == word or not {word, back} & _PCI_PATHS or "U" in {word, back}:
            continue
        return f"{label} to {column} is {word}, and {column} to {label} is {back}"
    return ""


def _placed(fields: Sequence[str], labels: Sequence[str]) -> bool:
    """Whether a row, label first, has the cell of its own device where the header has its column."""
    own = labels.index(fields[0]) + 1 if fields and fields[0] in labels else 0
    return 0 < own < len(fields) and fields[own] == "X"
