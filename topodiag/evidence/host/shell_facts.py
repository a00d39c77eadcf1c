"""Small commands that people paste: `ulimit`, `df /dev/shm`, `cat /proc/cmdline`, `uptime`, `ls` of a missing device.

    $ ulimit -l
    64
    max locked memory       (kbytes, -l) 64
    shm              64M     0   64M   0% /dev/shm
     14:20:07 up 6 days,  3:11,  1 user,  load average: 3.10, 2.87, 2.91
    BOOT_IMAGE=/vmlinuz-5.15.0 root=UUID=... ro intel_iommu=on
    ls: cannot access '/dev/nvidia-caps-imex-channels': No such file or directory

Each line counts by itself, with a prompt before it or without. Files of a capture that hold one such value are read by
the same table.

`lsmod`: the modules of the kernel that RDMA and GPUs need, whole or by a pattern that asks for peer memory.

    $ lsmod | grep -E 'nvidia|peer'
    nvidia_peermem         16384  0
    nvidia              56823808  2 nvidia_uvm,nvidia_modeset

Format: kmod (tools/lsmod.c). A pattern hides what it does not ask for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import islice

from topodiag.evidence.interface import to_float, to_int
from topodiag.evidence.page import MARGIN, Line, OfPage, Page
from topodiag.evidence.readings import Notes
from topodiag.lazy import regex
from topodiag.model.events import Event, Trust
from topodiag.model.gpudirect import PEERMEM_MODULES
from topodiag.model.node import IOMMU_UNITS
from topodiag.words.own_data import own_data, patterns

UNLIMITED = -1
KIB = 1024

_LIKE = patterns("evidence/host/lines", "limits")
LAUNCHED = "of launched processes, "
_UNITS = {"": KIB, "K": KIB, "M": KIB**2, "G": KIB**3, "T": KIB**4, "P": KIB**5}


class ShellFacts(OfPage):
    """Limits, size of /dev/shm, kernel command line, uptime, device nodes that are not there, as a shell shows them."""

    def read_page(self, page: Page) -> None:
        system = page.draft.single("os")
        limits = list(_limits(page))
        of_jobs = {name for of_job, _, name, _ in limits if of_job}
        by_name: dict[str, list[tuple[Line, object]]] = {}
        for line, name, value in [
            *(fact for fact in _facts(page) if fact[1] not in of_jobs),
            *((line, name, value) for of_job, line, name, value in limits if of_job or name not in of_jobs),
        ]:
            page.mark(line.number)
            by_name.setdefault(name, []).append((line, value))
        for line, units in by_name.pop(IOMMU_UNITS, [])[:1]:
            page.draft.events.append(Event("iommu", "", f"{IOMMU_UNITS}: {units}", line.origin, trust=Trust.AGENT))
        missing = by_name.pop("absent_devices", [])
        for line, _ in missing[:1]:
            line.offer(system, "absent_devices", frozenset(str(name) for _, name in missing))
        for name, values in by_name.items():
            for line, value in values:
                system.offer(name, value, line.origin)


def _limits(page: Page) -> Iterator[tuple[bool, Line, str, int | None]]:
    """The answers to `ulimit`: whether a job's or a container's start asked, the line, the field, its value."""
    asked, launched = "", False
    for line in page.lines():
        text = line.text.rstrip()
        question = _LIKE["asked"].match(text) if "ulimit" in text else None
        answer = _LIKE["answer"].match(text) if asked else None
        if question is not None:
            asked, launched = question["limit"], question["launched"] is not None
            continue
        if answer is not None:
            answer_line = Line(page, line.number, f"{LAUNCHED if launched else ''}ulimit -{asked}: {answer[1]}")
            if "l" in asked:
                yield launched, answer_line, "memlock_bytes", _bytes(answer[1])
            elif "H" in asked:
                yield launched, answer_line, "open_files", limit(answer[1])
        asked = ""


def _facts(page: Page) -> Iterator[tuple[Line, str, object]]:
    """Facts that stand in one line."""
    for line in page.lines():
        facts = ((fact, match) for fact in _FACTS if (match := fact[2].search(line.text.rstrip())) is not None)
        for (fields, convert, _), match in islice(facts, 1):
            yield from ((line, name, convert(text)) for name, text in zip(fields, match.groups(), strict=True))


def limit(text: str) -> int | None:
    """A limit, -1 without one; None for what is none."""
    return UNLIMITED if text.lower() == "unlimited" else to_int(text, low=0)


def _bytes(text: str) -> int | None:
    """`ulimit` prints KiB."""
    kib = limit(text)
    return kib * KIB if kib is not None and kib != UNLIMITED else kib


def _size(text: str) -> int:
    """A size of df: KiB without a unit, else with one (`64M`, `1.0G`)."""
    digits = text.rstrip("KMGTPi")
    return int(float(digits) * _UNITS[text[len(digits) :].rstrip("i")])


def _uptime(text: str) -> float:
    """Seconds of `6 days,  3:11`, `3:11` or `12 min`."""
    days, _, rest = text.rpartition(",")
    hours, _, minutes = rest.removesuffix(" min").rpartition(":")
    return float((to_int(days) or 0) * 86_400 + (to_int(hours) or 0) * 3600 + int(minutes) * 60)


_CONVERT: Mapping[str, Callable[[str], object]] = {
    "kib": _bytes, "count": limit, "size": _size, "text": str, "words": lambda text: " ".join(text.split()),
    "uptime": _uptime, "real": lambda text: to_float(text, low=0), "switch": lambda text: text != "0",
}  # fmt: skip
_FACTS = tuple(
    (fact["fields"], _CONVERT[fact["is"]], regex(fact["pattern"])) for fact in own_data("evidence/host/shell")["fact"]
)
_FILES = tuple(
    (file["path"], file["field"], _CONVERT[file["is"]], regex(file["line"]), file.get("optional", False))
    for file in own_data("evidence/host/shell")["file"]
)


def read_files(notes: Notes) -> None:
    """What the files of a capture say of the system, each in one line."""
    for path, field, convert, pattern, optional in _FILES:
        file = notes.files.get(path)
        if file is None:
            continue
        hit = next(((line, match[1]) for line in file.lines if (match := pattern.search(line[1])) is not None), None)
        if hit is None and optional:
            continue
        if not file.lines:
            notes.miss(notes.system, field, file.error or "nothing was read", file)
        elif hit is None or (value := convert(hit[1])) is None:
            notes.reject(notes.system, field, f"no {field.replace('_', ' ')} in it", file, hit[0] if hit else None)
        else:
            notes.take(notes.system, field, value, file, hit[0])


_HEADER = ["Module", "Size", "Used", "by"]
_NEEDED = PEERMEM_MODULES | {*own_data("evidence/host/names")["needed_modules"]}
_STARTS = (_HEADER[0], *_NEEDED)


class Lsmod(OfPage):
    """Loaded modules, and whether the peer memory module is among them."""

    def recognises(self, head: str) -> bool:
        lines = [line.strip(MARGIN) for line in head.split("\n")]
        rows = (line for line in lines if line.startswith(_STARTS))
        return any(map(_asked, lines)) or any(line.split() == _HEADER or _module(line) in _NEEDED for line in rows)

    def read_page(self, page: Page) -> None:
        system = page.draft.single("os")
        names: set[str] = set()
        head: Line | None = None
        asked: Line | None = None
        for line in page.lines():
            if line.bare.split() == _HEADER:
                head = head or line
            elif pattern := _asked(line.bare):
                asked = line if "peer" in pattern else asked
            elif name := _module(line.bare):
                if name in PEERMEM_MODULES:
                    line.offer(system, "peermem", True)
                names.add(name)
            else:
                continue
            page.mark(line.number)
        if head is not None and names:
            head.offer(system, "modules", frozenset(names))
            asked = head
        if asked is not None and names.isdisjoint(PEERMEM_MODULES) and (head is None or names):
            asked.offer(system, "peermem", False)


def _asked(line: str) -> str:
    """The pattern by which somebody searched the modules, "" in another line."""
    command, _, search = line.partition("|") if "lsmod" in line else ("", "", "")
    program, _, pattern = search.strip().partition(" ")
    return pattern if program in ("grep", "egrep", "rg") and command.strip().endswith("lsmod") else ""


def _module(row: str) -> str:
    """The module of a row, "" for what is none."""
    name, size, used, *_ = *row.split(), "", "", ""
    is_row = name.isidentifier() and name == name.lower() and size.isdecimal() and len(size) > 3
    return name if is_row and used.removeprefix("-").isdecimal() else ""
