"""Prints what hostile XML costs: `topodiag scan FILE` and `topodiag topo check FILE`, memory limited.

    python benchmarks/hostile_xml.py

Targets: refused, or read harmlessly, within 1000 ms and 200 MiB. Whole-process wall times, the median of three, beside
a good topology file's in the same round. Address space is limited to 1 GiB, so that growth fails at once.
"""

from __future__ import annotations

import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

TOPODIAG = shutil.which("topodiag", path=str(Path(sys.executable).parent)) or "topodiag"
# An installed program has its bytecode; a checkout gets it in the first run, unless this is set.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
TARGET_MS, TARGET_MIB, LIMIT = 1000, 200, 2**30
CPU = '<system version="1"><cpu numaid="0">'
GOOD = CPU + '<pci busid="0000:1b:00.0" class="0x030200"><gpu dev="0" sm="90"/></pci></cpu></system>'
BOMB = "".join(f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">' for n in range(1, 30))
MIB = 2**20


def _text(text: str) -> Callable[[Path], object]:
    return lambda file: file.write_text(text, encoding="utf-8")


def _sparse(file: Path) -> None:
    with file.open("wb") as out:
        out.write(b'<system version="1" name="')
        out.seek(2**30)
        out.write(b'"/>')


CASES: dict[str, Callable[[Path], object]] = {
    "a good file": _text(GOOD),
    "entity bomb": _text(f'<?xml version="1.0"?><!DOCTYPE system [{BOMB}]>{CPU}&a29;</cpu></system>'),
    "attribute of 1 GiB": _sparse,
    "attribute of 7 MiB": _text(CPU.replace("0", "x" * 7 * MIB) + "</cpu></system>"),
    "10,000 levels": _text(CPU + "<pci>" * 10_000),
    "10,000 unknown levels": _text(CPU + "<a>" * 10_000),
    "10,000 levels, prolog": _text('<?xml version="1.0"?>' + CPU + "<pci>" * 10_000),
    "10,000 levels, hwloc": _text('<topology version="2.0"><object type="Machine">' + '<object type="Core">' * 10_000),
    "million elements": _text(CPU + "<a/>" * 1_000_000),
    "million elements, tab": _text("\t" + CPU + "<pci/>" * 1_000_000),
    "million attributes": _text(CPU.replace(">", ' a="b"' * 1_000_000 + ">", 1)),
    "7 MiB of blanks in a tag": _text(CPU.replace(" ", " " * 7 * MIB, 1)),
    "open comments": _text(CPU + "<!--\n" * 1_000_000),
    "open tags": _text("\t" + CPU + "<pci a='\n" * 700_000),
}


COMMANDS = (("scan",), ("topo", "check"))


def run(command: tuple[str, ...], file: Path) -> tuple[float, int, float, str]:
    """Wall time in ms, exit code, peak MiB, and the first line of what it said."""
    with tempfile.TemporaryFile("w+") as said:
        begun = time.perf_counter()
        child = subprocess.Popen(
            [TOPODIAG, *command, str(file), "--fail-on", "never"],
            stdout=subprocess.DEVNULL,
            stderr=said,
        )
        resource.prlimit(child.pid, resource.RLIMIT_AS, (LIMIT, LIMIT))
        _, status, usage = os.wait4(child.pid, 0)
        took = (time.perf_counter() - begun) * 1000
        child.returncode = os.waitstatus_to_exitcode(status)
        said.seek(0)
        line = said.readline().strip().replace(str(file), "FILE")
    return took, child.returncode, usage.ru_maxrss / 1024, line


def main() -> None:
    worst_ms = worst_mib = 0.0
    for command in COMMANDS:
        print(f"{' '.join(command):26}{'ms':>8}{'x good':>8}{'MiB':>6}{'exit':>6}  said")
        good = 0.0
        with tempfile.TemporaryDirectory() as folder:
            for name, make in CASES.items():
                file = Path(folder, "hostile.xml")
                make(file)
                rounds = [run(command, file) for _ in range(3)]
                took = statistics.median(each[0] for each in rounds)
                peak = max(each[2] for each in rounds)
                good = good or took
                worst_ms, worst_mib = max(worst_ms, took), max(worst_mib, peak)
                print(f"{name:26}{took:8.0f}{took / good:8.1f}{peak:6.0f}{rounds[0][1]:6}  {rounds[0][3][:90]}")
        print()
    print(f"worst: {worst_ms:.0f} ms of {TARGET_MS}, {worst_mib:.0f} MiB of {TARGET_MIB}")


if __name__ == "__main__":
    main()
