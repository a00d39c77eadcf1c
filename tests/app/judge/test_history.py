"""A node held against earlier captures of itself: scan --since, and fleet history."""

import io
import json
import shutil
from pathlib import Path

import pytest

from topodiag.app.history import history
from topodiag.app.redact.redacting import redacted
from topodiag.app.scan import scan
from topodiag.model.errors import InputError
from topodiag.model.finding import Severity
from topodiag.model.history import FleetHistory
from topodiag.report.documents.from_model import plain
from topodiag.report.fleet.history import document, draw_history
from topodiag.report.html.fleet import history_extras
from topodiag.report.interface import Style
from topodiag.report.page import print_page
from topodiag.report.text import Page
from topodiag_probes.tokens import Tokens

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


# --- `fleet history`: a new store from bundles and a watch, its answer on the screen and as JSON


START = 1772352000.0


def watch_of(place: Path, host: str) -> str:
    """A watch of eight ports, one of which falls four times for 50 s."""
    up = 5000.0
    lines = [{"time": START, "up": up, "watch": 1, "host": host, "boot": "b", "every": 10}]
    lines += [_state(up, f"mlx5_{n}/1", "ACTIVE") for n in range(8)]
    for number in range(4):
        down = up + 600 + 3600 * number
        lines += [_state(down, "mlx5_3/1", "DOWN", down - 10), _state(down + 60, "mlx5_3/1", "ACTIVE", down + 50)]
    place.write_text("\n".join(json.dumps(line, separators=(",", ":")) for line in lines))
    return str(place)


def _state(up: float, part: str, value: str, seen: float | None = None) -> dict[str, object]:
    return {"time": START + up - 5000, "up": up, "part": part, "key": "state", "value": value, "seen": seen}


def drawn(answers: FleetHistory, width: int = 80) -> list[str]:
    page = Page(Style(width=width))
    draw_history(page, answers)
    page.repeat_answers()
    stream = io.StringIO()
    print_page(page, stream)
    return stream.getvalue().splitlines()


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("history")
    bundles = [capture(folder / f"{day}", "gpu07", f"2026-03-{day:02}T08:00:00Z") for day in (1, 3)]
    history(str(folder / "store"), [*bundles, watch_of(folder / "gpu07.watch.jsonl", "gpu07")])
    return str(folder / "store")


def test_the_answer_names_the_node_first_and_last(store: str) -> None:
    for width in (80, 160):
        lines = drawn(history(store, ()), width)
        assert lines[0] == lines[-1] == "✖ gpu07: a link comes and goes"
        assert lines[1] == "  2 captures of 1 node, 2026-03-01 to 2026-03-03; 1 node watched"
        assert max(map(len, lines)) <= width


def test_the_same_again_adds_nothing(store: str) -> None:
    answers = history(store, [str(Path(store).parent)])
    assert (answers.added, answers.known_before, answers.captures) == (0, 3, 2)


def test_json_has_the_findings_and_the_counts(store: str) -> None:
    answer = plain(document(history(store, ())))
    assert (answer["nodes"], answer["captures"], answer["watched"], answer["compared"]) == (1, 2, 1, 1)
    assert [finding["id"] for finding in answer["findings"]] == ["FLT004"]


def test_evidence_that_is_no_store_is_asked_by_itself(store: str) -> None:
    place = Path(store).parent / "gpu07.watch.jsonl"
    before = sorted(Path(store).parent.rglob("*"))
    assert [finding.id for finding in history(str(place), ()).findings] == ["FLT004"]
    assert sorted(Path(store).parent.rglob("*")) == before


def test_one_capture_of_each_node_is_nothing_to_compare(store: str) -> None:
    answers = history(str(Path(store).parent / "1"), ())
    assert drawn(answers)[0] == "? nothing to compare yet: one capture of each node"


def test_only_the_nodes_that_are_asked_about_are_told(store: str) -> None:
    assert history(store, (), ["gpu[07-08]"]).hosts == 1
    with pytest.raises(InputError, match="no capture of these nodes"):
        history(store, (), ["gpu08"])


def test_what_is_no_capture_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("nothing of the kind")
    with pytest.raises(InputError):
        history(str(tmp_path / "store"), [str(tmp_path / "a.txt")])


def test_the_page_draws_the_link_that_comes_and_goes_and_names_what_was_read(store: str) -> None:
    answers = history(store, ())
    (drawn_states,) = history_extras(answers).drawings
    assert "mlx5_3 down 4 times" in drawn_states.svg
    assert {file.kind for file in answers.inputs} == {"capture", "watch"}
    assert all(len(file.sha256) == 64 for file in answers.inputs)
    hidden = redacted(answers, b"key")
    assert [track.host for track in hidden.tracks] == [Tokens(b"key").host("gpu07")]
    assert hidden.tracks[0].captures == answers.tracks[0].captures
