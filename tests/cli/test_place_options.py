"""What place commands take: cluster, layout and dimensions, checked against each other, one line for each mistake."""

from pathlib import Path
from typing import Any

import click
import pytest

from tests.tables import examples, parts
from topodiag.app.case.placement import Placement, open_placement
from topodiag.cli import cli
from topodiag.cli.errors import run
from topodiag.cli.place.options import place_options
from topodiag.model.errors import TopodiagError


def opened(*args: str) -> Placement:
    """What a command would get."""
    taken: list[Placement] = []

    @click.command()
    @place_options
    def command(*, asked: Any) -> None:
        taken.append(open_placement(asked))

    command.main(list(args), standalone_mode=False)
    return taken[0]


def refused(*args: str) -> str:
    with pytest.raises((TopodiagError, click.ClickException)) as caught:
        opened(*args)
    line = caught.value.format_message() if isinstance(caught.value, click.ClickException) else str(caught.value)
    assert "\n" not in line
    return line


@examples("args", "ready")
def test_options_make_the_job_and_its_cluster(args: list[str], ready: dict[str, Any]) -> None:
    assert parts(opened(*args), ready) == ready


def test_gpus_that_are_left_over_are_told() -> None:
    notes = opened("--nodes", "4", "--tp", "5").cluster.notes
    assert "30 ranks: as many whole replicas as fit; 2 of 32 GPUs are left over (--world-size)" in notes
    assert not any("left over" in note for note in opened("--nodes", "4", "--tp", "8").cluster.notes)


def test_groups_make_the_ranks_that_they_name(tmp_path: Path) -> None:
    place = tmp_path / "groups.json"
    place.write_text('{"together": ["0-3", "4-7"]}')
    ready = opened("--nodes", "2", "--groups", str(place))
    assert (ready.world, ready.layout, len(ready.groups)) == (8, None, 1)


def test_a_hostfile_names_nodes_and_ranks_at_once(tmp_path: Path) -> None:
    place = tmp_path / "hosts"
    place.write_text("gpu1:8\ngpu2:8\n")
    ready = opened("--hostfile", str(place), "--tp", "8")
    assert ready.cluster.names == ("gpu1", "gpu2")
    assert ready.world == 16


@examples("args", "says")
def test_bad_options_are_one_clear_line(args: tuple[str, ...], says: str) -> None:
    assert says in refused(*args)


@examples("option", "content", "says")
def test_a_bad_file_ends_with_2_and_one_line(
    option: str, content: str, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / "file"
    place.write_text(content)
    shape = [] if option == "--topology" else ["--nodes", "4"]
    sizes = [] if option == "--groups" else ["--tp", "8"]
    assert run(cli, ["place", "audit", option, str(place), *shape, *sizes]) == 2
    error = capsys.readouterr().err
    assert says in error
    assert "Traceback" not in error
    assert len(error.strip().splitlines()) <= 2  # the error and its hint
