"""`fleet history`: a new store from bundles and a watch, its answer on the screen and as JSON."""

import io
import json
from pathlib import Path

import pytest

from tests.app.judge.test_since import capture
from topodiag.app.history import history
from topodiag.app.redact.redacting import redacted
from topodiag.model.errors import InputError
from topodiag.model.history import FleetHistory
from topodiag.report.documents.write_json import plain
from topodiag.report.fleet.history import document, draw_history
from topodiag.report.html.fleet import history_extras
from topodiag.report.interface import Style
from topodiag.report.page import print_page
from topodiag.report.text import Page
from topodiag_probes.tokens import Tokens

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
