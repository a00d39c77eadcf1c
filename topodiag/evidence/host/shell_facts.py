r"""Small commands that people paste: `ulimit`, `df /dev/shm`, `cat /proc/cmdline`, `uptime`, `ls` of a missing device.

    $ ulimit -l
    64
    max locked memory       (kbytes, -l) 64
    shm              64M     0   64M   0% /dev/shm
     14:20:07 up 6 days,  3:11,  1 user,  load average: 3.10, 2.87, 2.91
    BOOT_IMAGE=/vmlinuz-5.15.0 root=UUID=... ro intel_iommu=on
    ls: cannot access '/dev/nvidia-caps-imex-channels': No such file or directory

Each line counts by itself, with a prompt before it or without.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from topodiag.evidence.draft import NodeDraft
from topodiag.evidence.interface import Blob, Parsed, Source, to_int
from topodiag.evidence.readings import Reading
from topodiag.lazy import regex
from topodiag.model.system import IOMMU_UNITS, KernelEvent
from topodiag.model.topics import Topic
from topodiag.words.own_data import own_data

MAX_LINE = 4096
UNLIMITED = -1
KIB = 1024

_PROMPT = r"(?:[^\n$#>]{0,80}[$#>] ?)?"
_ASKED = regex(rf"{_PROMPT}(?:sudo )?ulimit -([HS]?[ln][HS]?)\s*$")
_LAUNCHED = regex(
    rf"{_PROMPT}(?:sudo )?(?:srun|mpirun|mpiexec|prun|flux run|docker|podman|kubectl|oc|apptainer|singularity|enroot"
    r"|pdsh|clush|ssh) [^\n]{0,300}?[\"'` ]ulimit -([HS]?[ln][HS]?)[\"'`]?\s*$"
)
"""The same where a job or a container starts its processes: that limit counts, whatever a login shell has."""
_ANSWER = regex(r"\s{0,8}(?:[\w.-]{1,64}: )?(unlimited|[0-9]{1,18})\s*$")
LAUNCHED = "of launched processes, "
_UNITS = {"": KIB, "K": KIB, "M": KIB**2, "G": KIB**3, "T": KIB**4, "P": KIB**5}


class ShellFacts(Source[Reading]):
    """Limits, size of /dev/shm, kernel command line, uptime, device nodes that are not there, as a shell shows them."""

    kind = "shell"
    speaks_of = frozenset({Topic.OS})
    trust = 50
    a_piece = "what a few lines of a shell do not say, nobody asked for"

    def recognises(self, head: str) -> bool:
        return any(True for _ in _readings(line for line in enumerate(head.split("\n"), 1)))

    def parse(self, blob: Blob) -> Parsed[Reading]:
        parsed: Parsed[Reading] = Parsed()
        readings = list(_readings(blob.lines()))
        launched = {reading.name for reading in readings if reading.text.startswith(LAUNCHED)}
        parsed.records.extend(
            reading for reading in readings if reading.name not in launched or reading.text.startswith(LAUNCHED)
        )
        return parsed

    def fill(self, blob: Blob, parsed: Parsed[Reading], draft: NodeDraft) -> None:
        units = [reading for reading in parsed.records if reading.name == IOMMU_UNITS]
        for reading in units[:1]:
            origin = blob.origin(reading.line, reading.text)
            draft.events.append(KernelEvent("iommu", f"{IOMMU_UNITS}: {reading.value}", origin, of_log=False))
        readings = [reading for reading in parsed.records if reading.name == "absent_devices"]
        for reading in parsed.records:
            if reading.name not in ("absent_devices", IOMMU_UNITS):
                reading.offer_to(draft.single("os"), blob)
        if readings:
            names = frozenset(str(reading.value) for reading in readings)
            draft.single("os").offer("absent_devices", names, blob.origin(readings[0].line, readings[0].text))


def _readings(lines: Iterator[tuple[int, str]]) -> Iterator[Reading]:
    asked, whose = "", ""
    for number, whole in lines:
        line = whole[:MAX_LINE].rstrip()
        launched = _LAUNCHED.match(line) if "ulimit" in line else None
        if (question := launched or _ASKED.match(line)) is not None:
            asked, whose = question[1], LAUNCHED if launched is not None else ""
            continue
        if asked and (answer := _ANSWER.match(line)) is not None:
            if "l" in asked:
                yield Reading("os", "memlock_bytes", _bytes(answer[1]), number, f"{whose}ulimit -{asked}: {answer[1]}")
            elif "H" in asked:
                yield Reading("os", "open_files", limit(answer[1]), number, f"{whose}ulimit -{asked}: {answer[1]}")
        asked = ""
        yield from _of_line(number, line)


def _of_line(number: int, line: str) -> Iterator[Reading]:
    for fields, convert, pattern in _FACTS:
        if (match := pattern.search(line)) is not None:
            yield from (
                Reading("os", name, convert(text), number, line)
                for name, text in zip(fields, match.groups(), strict=True)
            )
            return


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
    "uptime": _uptime,
}  # fmt: skip
_FACTS = tuple(
    (fact["fields"], _CONVERT[fact["is"]], regex(fact["pattern"])) for fact in own_data("evidence/host/shell")["fact"]
)
