"""What a run loads and compiles is what its evidence calls for: held by names and numbers, not by time."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.shown import ROOT
from tests.tables import examples

RUN = """
import json, os, re, runpy, sys
import re._compiler as compiler
compiled, real, root = [0], compiler.compile, sys.argv[1]

def counting(pattern, flags=0):
    frame = sys._getframe(1)
    while frame.f_code.co_filename.endswith(("re/__init__.py", "topodiag/lazy.py")):
        frame = frame.f_back
    compiled[0] += frame.f_code.co_filename.startswith((f"{root}/topodiag/", f"{root}/probes/"))
    return real(pattern, flags)

compiler.compile = counting
out = os.dup(1)
os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
sys.argv = ["topodiag", *sys.argv[2:]]
try:
    runpy.run_module("topodiag", run_name="__main__")
except SystemExit:
    pass
os.write(out, json.dumps([sorted(sys.modules), compiled[0]]).encode())
"""
ALWAYS = ("topodiag.report.html", "topodiag.sweep", "topodiag.emit", "topodiag.draw", "topodiag.api", "pandas",
          "jinja2", "prometheus_client", "distributed", "yaml", "psutil", "pynvml", "hyperscan", "asyncio")  # fmt: skip
"""Not loaded by any run that judges evidence and prints a table."""
MODEL = ("topodiag.nccl.search", "topodiag.nccl.graph", "topodiag.nccl.tuning", "topodiag.cost", "topodiag.placement",
         "topodiag.expect.rates", "topodiag_probes.redact")  # fmt: skip
"""NCCL's decisions and what links carry, which only a cause with a mend, a run or a layout asks for."""
ONE_LINE = "[rank3]: torch.OutOfMemoryError: CUDA out of memory.\n"


def loaded(*arguments: str) -> tuple[list[str], int]:
    """Modules that a run loads, and patterns that code of the package compiles."""
    command = [sys.executable, "-c", RUN, str(ROOT), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True, cwd=ROOT)
    modules, compiled = json.loads(done.stdout)
    return modules, compiled


@examples("arguments", "absent", "most_modules", "most_patterns")
def test_a_run_loads_and_compiles_what_its_evidence_calls_for(
    tmp_path: Path, arguments: tuple[str, ...], absent: tuple[str, ...], most_modules: int, most_patterns: int
) -> None:
    line = tmp_path / "line.log"
    line.write_text(ONE_LINE)
    modules, compiled = loaded(*(str(line) if each == "LINE" else each for each in arguments))
    unwanted = (*ALWAYS, *MODEL, *absent)
    assert [
        name for name in modules if name in unwanted or name.startswith(tuple(f"{each}." for each in unwanted))
    ] == []
    assert sum(name.startswith("topodiag") for name in modules) <= most_modules
    assert compiled <= most_patterns
