"""`fixture:NAME`: in a checkout all machines, jobs and tables; in a wheel a few of each, packed, that say the same."""

import json
from collections import Counter
from pathlib import Path

import pytest

from tests import program
from tests.tables import examples
from tools.pack_fixtures import pack
from topodiag.evidence.intake.collected import INCIDENT, JOB, NODE, TABLE, fixture_path, fixtures, shipped
from topodiag.evidence.intake.gather import gather
from topodiag.model.errors import InputError

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder as a wheel holds it."""
    place = tmp_path_factory.mktemp("wheel")
    pack(ROOT / "fixtures", place)
    return place


def test_a_checkout_has_machines_jobs_and_tables_and_no_name_twice() -> None:
    names = Counter(fixture.name for fixture in shipped())
    assert set(names.values()) == {1}
    assert {fixture.kind for fixture in shipped()} == {INCIDENT, NODE, JOB, TABLE}
    assert set(fixtures()) == {fixture.name for fixture in shipped() if fixture.kind == NODE}
    assert all(fixture.path.exists() and fixture.about for fixture in shipped())


def test_an_unknown_name_is_told_with_the_nearest() -> None:
    with pytest.raises(InputError, match="no such fixture") as error:
        fixture_path("gdr-of")
    assert error.value.hint.startswith("did you mean gdr-off")
    assert error.value.hint.endswith("topodiag fixtures lists them")


def test_packing_twice_gives_the_same_bytes(wheel: Path, tmp_path: Path) -> None:
    names = pack(ROOT / "fixtures", tmp_path)
    assert {name: (tmp_path / name).read_bytes() for name in names} == {
        name: (wheel / name).read_bytes() for name in names
    }


def test_a_wheel_ships_an_incident_four_machines_a_job_and_a_table(wheel: Path) -> None:
    index = json.loads((wheel / "about.json").read_text())
    assert Counter(each["kind"] for each in index.values()) == {INCIDENT: 1, NODE: 4, JOB: 1, TABLE: 1}
    assert sum(path.stat().st_size for path in wheel.rglob("*") if path.is_file()) < 250_000


@examples("command", "name")
def test_what_is_packed_gives_the_findings_of_the_folder(command: str, name: str, wheel: Path) -> None:
    def findings(path: str) -> list[tuple[str, str]]:
        done = program.run(command, path, "--format", "json", "--fail-on", "never")
        assert done.returncode == 0, done.stderr
        return [(finding["id"], finding["message"]) for finding in json.loads(done.stdout)["findings"]]

    packed = json.loads((wheel / "about.json").read_text())[name]["file"]
    assert findings(str(wheel / packed)) == findings(f"fixture:{name}")


@pytest.mark.parametrize(
    "each", [fixture for fixture in shipped() if fixture.kind == TABLE], ids=lambda document: document.name
)
def test_a_table_is_judged_as_it_was_made(each: object) -> None:
    name = each.name  # type: ignore[attr-defined]
    done = program.run("bench", f"fixture:{name}", "--machine", "fixture:dgx-h100-healthy", "--format", "json")
    (run,) = json.loads(done.stdout)["facts"]["benchmarks"]
    wanted = json.loads((ROOT / "fixtures" / "tables" / name / "expected.json").read_text())["verdict"]
    assert run["verdict"] == wanted


def test_what_is_known_of_an_incident_is_no_evidence_of_it() -> None:
    name = "data-loader-of-one-rank"
    intake = gather([f"fixture:{name}"])
    read = [piece.name for piece in intake.pieces] + [file.path for file in intake.aside]
    assert read
    assert not any(path.endswith("truth.json") for path in read)
    beside = gather([str(fixture_path(name))])
    assert any(piece.name.endswith("truth.json") for piece in beside.pieces)
