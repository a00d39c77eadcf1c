"""Prints which lines of NCCL the log reader makes nothing of: each INFO and WARN of its source, filled in.

    python -m benchmarks.nccl_lines CHECKOUT [--ref REF ...] [--noise | --harmless | --warnings | --silent]
    python -m benchmarks.nccl_lines libnccl.so.2 ...

CHECKOUT is a clone of github.com/NVIDIA/nccl, bare or not; REF a tag or a branch (default HEAD). A library of a release
whose source is not there is read with objdump (x86-64). Of several each line is printed once, with the first that has
it. By default the lines of level INFO of which no row comes. --noise prints those that are known and passed over,
--harmless the warnings that are taken for no fault, --warnings all others with the kind of event that is made of them.
--silent those of level ATTN, and those of level INFO that speak of a failure, whose kind no check reads, each with the
reason why it says nothing of a fault; `?` where none is known.
Nothing is fetched and nothing written.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import topodiag
from topodiag.checks.shared.phrases import meaning
from topodiag.evidence.nccl_log.grammar.grammar import parse
from topodiag.evidence.nccl_log.rebuild.events import classify

FOLDERS = ("src", "plugins", "ext-net", "ext-tuner", "ext-profiler")
_CALL = re.compile(r"\b(INFO|WARN|ATTN)\s*\(")
_PIECE = re.compile(r'\s*(?:"((?:[^"\\]|\\.)*)"|(PRI([dioux])(?:\d{2}|PTR|MAX))|([A-Z][A-Z0-9_]{2,60}))')
_SPEC = re.compile(r"%([-+ #0]*)(\*|\d+)?(?:\.(\*|\d+))?(hh|h|ll|l|z|j|t|q)?([diouxXeEfgGcspn%])")
_TROUBLE = re.compile(
    r"fail|error|degrad|disabl|unable|cannot|could not|mismatch|inconsist|invalid|not (?:found|supported|available)"
    r"|too |exceed|ignor|recover|lost|stale|slow|timed? ?out|refus|reject|reset|discard",
    re.IGNORECASE,
)
_READERS = ("checks", "app", "verdict", "evidence/nccl_log/rebuild", "evidence/nccl_log/tables")
"""Rooms that ask for texts by their kind."""
SILENT: tuple[tuple[str, str], ...] = (
    (r"destroy|commDestroySync|proxy stop error|intranode barrier|shm (?:unlink|close)", "a communicator's end"),
    (
        r"\[Service thread\]|Inactive op|List loop|proxyDestroy",
        "the proxy of a rank that ended, which is an event",
    ),
    (r"Failed to set CUDA device", "a thread of NCCL goes on without a device of its own"),
    (r"MemManager", "memory of a communicator that is suspended"),
    (r"dev index from", "numbers of NICs in a topology file: NCCL takes its own"),
    (r"deregister|register|DMABuf|DMA-BUF|segments", "a buffer is not registered: NCCL copies it, as by default"),
    (r"^GIN|GIN |GIN:|devComm|Symmetric registration", "device-initiated communication, which no collective needs"),
    (
        r"CTAs|CTAS|CGA|cgaCluster|chunk size|P2P_PEERS",
        "a bound of channels, corrected: NET006 judges the channels",
    ),
    (
        r"nvml\w+\(\) failed|query_ece|dlv?sym failed|Dlsym failed|gdr_|GDRCOPY|backend|doca_",
        "an optional call of a library",
    ),
    (r"memory pools|P2P not supported between", "what a GPU cannot do: P2P001 judges what is used instead"),
    (r"TOPO/NET : Tried merging", "ports stay NICs of their own: the prediction asks NCCL_IB_MERGE_NICS"),
    (r"PXN Disabled", "an old plug-in: NET004 judges the ways"),
    (r"Profiler", "a profiler, which no job needs"),
    (r"NVLS UB", "a buffer goes the internal way, as by default"),
)
"""Lines that speak of a failure and are passed over, with the reason."""
_ESCAPES = {"n": "\n", "t": "\t", '"': '"', "\\": "\\", "0": "\0"}
_SUBSYSTEMS = re.compile(r"\s*\(?\s*(?:\(?\s*(?:NCCL_[A-Z0-9_]+|flags|subsys\w*)\s*\)?\s*(?:\|\s*)?)+\)?\s*,")


_LOGS = re.compile(r"call\s.*ncclDebugLogInternal17ncclDebugLogLevel")
_LEVELS = {2: "WARN", 3: "INFO", 6: "ATTN"}
_SET = re.compile(r"\b(?:mov|lea)\s.*,%(edi|rdi|r8d|r9|rdx)(?:\s+# ([0-9a-f]+)|$)")
_CONSTANT = re.compile(r"mov\s+\$0x([0-9a-f]+),%")
_WINDOW = 40
"""Instructions before a call in which its arguments are set."""


@dataclass(frozen=True)
class Format:
    """One call: where it stands, and what it prints of it."""

    place: str
    level: str
    text: str


def formats(path: str, source: str) -> Iterator[Format]:
    """The calls of a file whose format is written there."""
    for call in _CALL.finditer(source):
        at = call.end()
        level = call[1]
        if level != "WARN":
            flags = _SUBSYSTEMS.match(source, at)
            if flags is None:
                continue
            at = flags.end()
        text, found = "", False
        while (piece := _PIECE.match(source, at)) is not None:
            if piece[1] is not None:
                text, found = text + _plain(piece[1]), True
            else:
                text += piece[3] or "%s"  # a macro that is a text
            at = piece.end()
        if found:
            yield Format(f"{path}:{source.count(chr(10), 0, call.start()) + 1}", level, text)


def formats_of_library(path: str) -> Iterator[Format]:
    """The calls of ncclDebugLogInternal(level, flags, file, function, line, format, ..) with a constant format."""
    data = Path(path).read_bytes()

    def text(address: str | None) -> str:
        # sections that are loaded first lie in the file where they lie in memory
        at = int(address, 16) if address else len(data)
        return data[at : max(at, data.find(b"\0", at, at + 4096))].decode("utf-8", "replace")

    command = ["objdump", "-d", "-j", ".text", "--no-show-raw-insn", path]
    last: deque[str] = deque(maxlen=_WINDOW)
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as dump:
        for instruction in dump.stdout or ():
            last.append(instruction.rstrip())
            if _LOGS.search(instruction) is None:
                continue
            given: dict[str, str] = {}
            addresses: dict[str, str | None] = {}
            for each in last:
                if found := _SET.search(each):
                    constant = _CONSTANT.search(each)
                    given[found[1]], addresses[found[1]] = constant[1] if constant else "", found[2]
            level = _LEVELS.get(int(given.get("edi") or "0", 16))
            format_text = text(addresses.get("r9"))
            if level and format_text:
                yield Format(f"{text(addresses.get('rdx'))}:{int(given.get('r8d') or '0', 16)}", level, format_text)
            last.clear()


def _plain(literal: str) -> str:
    return re.sub(r"\\(.)", lambda each: _ESCAPES.get(each[1], each[1]), literal)


def filled(text: str) -> str:
    """The line with a value for each conversion, as printf would write it."""

    def value(spec: re.Match[str]) -> str:
        kind, before = spec[5], text[: spec.start()]
        if kind == "%":
            return "%"
        width = 0 if spec[2] in (None, "*") else int(spec[2])
        made = {"s": _word(before, text[spec.end() :]), "p": "0x7f3a5c000000", "c": "c", "n": ""}.get(kind)
        if made is None:
            made = "1.500000" if kind in "eEfgG" else "1f" if kind in "xX" else "3"
            if "0" in spec[1]:
                made = made.zfill(width)
        return made.ljust(width) if "-" in spec[1] else made.rjust(width)

    return _SPEC.sub(value, text).rstrip("\n")


_WORDS = (
    ("NET/$", "IB"),
    (r"COLLNET/$", "SHARP"),
    (r"^(?:WARN )?$(?= set| is| =)", "NCCL_VALUE"),
    (r"^Paths from $", "GPU"),
    (r"via (?:NET|COLLNET)/%s/%d.*$", ""),
    (r"via P2P/$", "IPC"),
    (r"via P2P/.*$", ""),
    (r"^Trees$", " [0] 1/-1/-1->0->-1"),
    (r"^CC $", "Off"),
    (r"^$:%d", "init.cc"),
    (r"^$ : Using", "NET/IB"),
    (r"^$/Plugin", "NET"),
    (r"^$ (?:comm %p|%s comm %p).*Init ", "ncclCommInitRank"),
    (r"- $ COMPLETE", "Destroy"),
    (r"^(?:NET/)?$ gdr_open", "GDRCOPY :"),
)
"""What %s stands for, by the text before it and, after a look ahead, behind it."""


def _word(before: str, behind: str) -> str:
    return next((word for pattern, word in _WORDS if re.search(_joined(pattern), f"{before}\0{behind}")), "value")


def _joined(pattern: str) -> str:
    return pattern.replace("$", "\0", 1)


def sources(checkout: str, ref: str) -> Iterator[tuple[str, str]]:
    """Files of C and C++ of a revision, with their text."""
    listed = _git(checkout, "ls-tree", "-r", "--name-only", ref, "--", *FOLDERS)
    for path in listed.splitlines():
        if path.endswith((".cc", ".cu", ".h", ".hpp", ".c", ".cpp")):
            yield path, _git(checkout, "show", f"{ref}:{path}")


def _git(checkout: str, *command: str) -> str:
    return subprocess.run(
        ["git", "-C", checkout, *command], check=True, capture_output=True, text=True, errors="replace"
    ).stdout


def judged(each: Format) -> str:
    """What becomes of the line: "row", "noise" or "unread"; a warning is "harmless" or a "warning"."""
    line = filled(each.text)
    if each.level == "WARN":
        return "harmless" if meaning("harmless_to_a_job", line) else "warning"
    rows = parse(each.level, line)
    return "unread" if rows is None else "row" if rows else "noise"


@cache
def readers() -> str:
    """The source of what asks for kinds of text by name."""
    rooms = [Path(topodiag.__file__).parent / room for room in _READERS]
    return "\n".join(path.read_text() for room in rooms for path in sorted(room.rglob("*.py")))


def is_silent(each: Format) -> bool:
    """Whether a line speaks of a failure and nothing reads it."""
    line = filled(each.text)
    if each.level == "WARN" or (each.level != "ATTN" and _TROUBLE.search(line) is None):
        return False
    rows = parse(each.level, line) or []
    kinds = {columns.get("kind") for table, columns in rows if table == "text"}
    return not rows or bool(kinds and not any(f'"{kind}"' in readers() for kind in kinds))


def reason(each: Format) -> str:
    """Why a silent line says nothing of a fault, `?` where nobody knows."""
    return next((why for pattern, why in SILENT if re.search(pattern, filled(each.text))), "?")


def shown(each: Format, what: str) -> str:
    line = filled(each.text)
    if what == "silent":
        return f"{each.level} ({reason(each)}) {line}"
    kind = f"[{classify('WARN', line)[0]}] " if what == "warning" else ""
    return f"{each.place:<44} {each.level} {kind}{line}"


def _all(given: Sequence[str], refs: Sequence[str]) -> Iterator[tuple[str, Format]]:
    for path in given:
        if Path(path).is_file():
            for each in formats_of_library(path):
                yield "library", each
            continue
        for ref in refs:
            for name, source in sources(path, ref):
                for each in formats(name, source):
                    yield ref, each


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", nargs="+")
    parser.add_argument("--ref", nargs="+", default=["HEAD"])
    wanted = parser.add_mutually_exclusive_group()
    modes = (("--noise", "noise"), ("--harmless", "harmless"), ("--warnings", "warning"), ("--silent", "silent"))
    for name, what in modes:
        wanted.add_argument(name, dest="wanted", action="store_const", const=what, default="unread")
    options = parser.parse_args(arguments)
    count: Counter[tuple[str, str]] = Counter()
    met: set[tuple[str, str]] = set()
    for name, each in _all(options.source, options.ref):
        if (each.level, each.text) in met or not _SPEC.sub("", each.text).strip():
            continue  # what is printed of a text made elsewhere shows nothing here
        met.add((each.level, each.text))
        what = judged(each)
        count[each.level, what] += 1
        if is_silent(each):
            count[each.level, f"silent, {'no reason' if reason(each) == '?' else 'with a reason'}"] += 1
        if what == options.wanted or (options.wanted == "silent" and is_silent(each)):
            print(f"{name:<11} {shown(each, options.wanted)}")
    for (level, what), number in sorted(count.items()):
        print(f"{level} {what}: {number}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
