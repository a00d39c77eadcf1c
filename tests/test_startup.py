"""What a run loads and compiles is what its evidence calls for: held by names and numbers, not by time."""

import json
import subprocess
import sys
import tarfile
from pathlib import Path

from tests.shown import ROOT
from tests.tables import examples, texts

TEXTS = texts(__file__)
RUN = TEXTS["run"]
ALWAYS = ("topodiag.report.html", "topodiag.sweep", "topodiag.emit", "topodiag.draw", "topodiag.api", "pandas",
          "pyarrow", "jinja2", "prometheus_client", "distributed", "yaml", "psutil", "pynvml", "hyperscan",
          "asyncio")  # fmt: skip
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


def bundle_of(folder: Path, path: Path) -> Path:
    """The archive of a captured machine as the collector writes it: its manifest first."""
    with tarfile.open(path, "w:gz", format=tarfile.USTAR_FORMAT) as archive:
        archive.add(folder / "manifest.json", "manifest.json")
        for part in ("commands", "json", "trees"):
            archive.add(folder / part, part)
    return path


@examples("arguments", "absent", "most_modules", "most_patterns")
def test_a_run_loads_and_compiles_what_its_evidence_calls_for(
    tmp_path: Path, arguments: tuple[str, ...], absent: tuple[str, ...], most_modules: int, most_patterns: int
) -> None:
    line = tmp_path / "line.log"
    line.write_text(ONE_LINE)
    bundle = bundle_of(ROOT / "fixtures" / "nodes" / "dgx-h100-healthy", tmp_path / "bundle.tar.gz")
    inputs = {"LINE": str(line), "BUNDLE": str(bundle)}
    modules, compiled = loaded(*(inputs.get(argument, argument) for argument in arguments))
    unwanted = (*ALWAYS, *MODEL, *absent)
    assert [
        name for name in modules if name in unwanted or name.startswith(tuple(f"{text}." for text in unwanted))
    ] == []
    assert sum(name.startswith("topodiag") for name in modules) <= most_modules
    assert compiled <= most_patterns
