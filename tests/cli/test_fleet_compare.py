"""`topodiag fleet compare`: what it takes, what it writes, and how it exits."""

from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.fleet.fleets import fleet, found, having, with_fact
from tests.tables import examples
from topodiag.app import compare as use_case
from topodiag.cli.errors import Outcome
from topodiag.cli.fleet.compare import FORMATS, compare
from topodiag.fleet.nodes import Fleet
from topodiag.model.finding import Severity


@pytest.fixture(autouse=True)
def captures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Twenty nodes: one with an error, one with an odd driver."""
    odd = with_fact("driver", "NVIDIA driver", "550.54.15")
    nodes = fleet(20, {4: having(found("NVL001", Severity.ERROR)), 7: odd})
    monkeypatch.setattr(use_case, "read_fleet", lambda paths, **_: Fleet(tuple(nodes)))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "captures").mkdir()


def asked(*arguments: str) -> tuple[Result, int]:
    """What the command printed, and the code that its findings call for."""
    outcome = Outcome()
    return CliRunner().invoke(compare, ["captures", *arguments], obj=outcome), outcome.code


@pytest.mark.parametrize("format_", FORMATS)
def test_every_format_is_written(format_: str, tmp_path: Path) -> None:
    done, _ = asked("--format", format_, "--output", str(tmp_path / "out"))
    assert (done.exit_code, done.output) == (0, "")
    assert (tmp_path / "out").stat().st_size > 50


def test_the_lists_are_written_beside_the_page(tmp_path: Path) -> None:
    done, _ = asked("--pass-list", "good", "--fail-list", "bad")
    assert done.stdout.startswith("✖ 2 of 20 nodes to exclude now  n[0004,0007]\n")
    assert (tmp_path / "bad").read_text() == "n[0004,0007]\n"
    assert (tmp_path / "good").read_text() == "n[0000-0003,0005-0006,0008-0019]\n"


def test_the_first_box_of_the_page_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sick = replace(found("NVL001", Severity.ERROR), fix=("reseat the tray", "run again"))
    for nodes, said in ((fleet(20, {4: having(sick)}), True), (fleet(20, {}), False)):
        monkeypatch.setattr(use_case, "read_fleet", lambda paths, nodes=nodes, **_: Fleet(tuple(nodes)))
        asked("--html", "page.html")
        page = (tmp_path / "page.html").read_text(encoding="utf-8")
        assert ('<p class="do"><strong>do</strong>' in page) is said
        assert ("reseat the tray" in page) is said


def test_exit_codes_are_those_of_scan() -> None:
    assert asked()[1] == 1
    assert asked("--fail-on", "never")[1] == 0


@examples("driver_of", "excluded", "codes")
def test_a_node_to_exclude_is_exit_1_whatever_its_severity(
    driver_of: tuple[int, ...], excluded: bool, codes: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    nodes = fleet(20, {at: with_fact("driver", "NVIDIA driver", "550.54.15") for at in driver_of})
    monkeypatch.setattr(use_case, "read_fleet", lambda paths, **_: Fleet(tuple(nodes)))
    done, code = asked()
    assert ("to exclude now  n" in done.stdout) is excluded
    assert (code, asked("--fail-on", "warning")[1], asked("--fail-on", "never")[1]) == codes
