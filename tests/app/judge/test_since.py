"""`scan --since`: a node held against an earlier capture of itself."""

import json
import shutil
from pathlib import Path

import pytest

from topodiag.app.scan import scan
from topodiag.model.errors import InputError
from topodiag.model.finding import Severity

FIXTURES = Path(__file__).parents[3] / "fixtures" / "nodes"
DEVICES = "trees/sys-infiniband.tree"
NODE = "t4-box"


def capture(place: Path, host: str, time: str, *edits: tuple[str, str, str], base: str = NODE) -> str:
    """A captured machine of another name and time, with texts replaced: (file, text, by)."""
    shutil.copytree(FIXTURES / base, place)
    manifest = place / "manifest.json"
    manifest.write_text(json.dumps(json.loads(manifest.read_text()) | {"host": host, "time": time}))
    for name, text, by in edits:
        file = place / name
        assert text in file.read_text()
        file.write_text(file.read_text().replace(text, by, 1))
    return str(place)


def test_since_says_what_changed_and_what_fell(tmp_path: Path) -> None:
    rate = f"{'= sys/class/infiniband/mlx5_4/ports/1/rate'}\t"
    before = capture(tmp_path / "a", "gpu07", "2026-03-01T08:00:00Z", base="dgx-h100-healthy")
    now = capture(
        tmp_path / "b", "gpu07", "2026-03-08T08:00:00Z",
        (DEVICES, rate + "400 Gb/sec (4X NDR)", rate + "200 Gb/sec (4X HDR)"),
        (DEVICES, "mlx5_5/ports/1/counters/link_downed\t0", "mlx5_5/ports/1/counters/link_downed\t6"),
        ("trees/os-state.tree", "1814402.55", "2419202.55"),
        base="dgx-h100-healthy",
    )  # fmt: skip
    findings = [finding for finding in scan([now], since=before).findings if finding.id.startswith("FLT")]
    assert [(finding.id, finding.severity, finding.where.nics) for finding in findings] == [
        ("FLT003", Severity.WARNING, ("mlx5_4",)),
        ("FLT004", Severity.WARNING, ("mlx5_5",)),
    ]
    assert findings[0].message == "nic: rate changed from 400 Gb/s to 200 Gb/s"
    with pytest.raises(InputError, match="later than what is scanned"):
        scan([before], since=now)


def test_the_same_capture_twice_has_no_change(tmp_path: Path) -> None:
    before = capture(tmp_path / "a", "gpu07", "2026-03-01T08:00:00Z")
    now = capture(tmp_path / "b", "gpu07", "2026-03-02T08:00:00Z")
    result = scan([now], since=before)
    (outcome,) = [outcome for outcome in result.outcomes if outcome.check == "FLT003"]
    assert outcome.findings == ()
    assert "facts are as in the capture given of 2026-03-01" in outcome.why


def test_a_capture_of_another_node_is_refused_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"is a capture of t4-vm, and the evidence is of .*") as caught:
        scan(["fixture:no-gpu"], since=capture(tmp_path / "a", "t4-vm", "2026-03-01T08:00:00Z"))
    assert "earlier capture of the same node" in str(caught.value.hint)


def test_a_node_that_was_renamed_is_known_by_its_parts(tmp_path: Path) -> None:
    before = capture(tmp_path / "a", "old-name", "2026-03-01T08:00:00Z")
    now = capture(tmp_path / "b", "new-name", "2026-03-02T08:00:00Z")
    assert any(outcome.check == "FLT003" for outcome in scan([now], since=before).outcomes)
