"""topodiag with a pipeline that does what FAKE says: its exit codes can be tested whatever the checks find today."""

import os
import sys
import types
from dataclasses import dataclass, replace
from pathlib import Path

from topodiag.app import scan as app_scan
from topodiag.cli import main
from topodiag.model.errors import InputError
from topodiag.model.finding import Severity

sys.path.insert(0, str(Path(__file__).parents[2]))  # where it is started as a file
from tests.report import machines


@dataclass(frozen=True)
class Options:
    deadline_s: float = 20.0
    sample_s: float = 0.0
    save: str | None = None
    redact: bool = False


def result():

    what = os.environ["FAKE"]
    if what == "interrupt":
        raise KeyboardInterrupt
    if what == "unreadable":
        raise InputError("evil\x1b[31m.txt", "is not evidence", line=3, hint="give a bundle")
    if what == "bug":
        raise ZeroDivisionError("secret detail")
    if what == "clean":
        return machines.healthy()
    if what == "no-gpu":
        return machines.without_gpus()
    if what == "huge":
        many = tuple(
            machines.finding(message=f"finding {i}", fix=(str(i),)) for i in range(800)
        )  # more than a pipe holds
        return replace(machines.sick(), findings=many)
    return replace(machines.sick(), findings=(machines.finding(severity=Severity[what.upper()]),))


def scan(paths, *, options=None, since=None):
    return result()


def live(*, options=None, on_progress=None, since=None):
    if os.environ["FAKE"] == "options":
        sys.stderr.write(f"{options} {on_progress is not None}\n")
        os.environ["FAKE"] = "clean"
    if on_progress is not None:
        on_progress("start", "nvidia-smi topo -m", 0.0)
        on_progress("done", "nvidia-smi topo -m", 0.1)
    return result()


fake = types.ModuleType("topodiag.app.scan")
fake.Options, fake.scan, fake.live = Options, scan, live
fake.pictured = app_scan.pictured  # draws what it reads, and knows no result from elsewhere
fake.fixture_path = lambda name: Path("/nonexistent") / name
if "FAKE" in os.environ:
    sys.modules["topodiag.app.scan"] = fake

if __name__ == "__main__":
    main()
