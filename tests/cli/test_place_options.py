"""What place commands take: cluster, layout and dimensions, checked against each other, one line for each mistake."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import pytest

from tests.tables import examples
from topodiag.app.case.placement import Placement
from topodiag.app.judge.placing import open_place
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
        taken.append(open_place(asked))

    command.main(list(args), standalone_mode=False)
    return taken[0]


def refused(*args: str) -> str:
    with pytest.raises((TopodiagError, click.ClickException)) as caught:
        opened(*args)
    line = caught.value.format_message() if isinstance(caught.value, click.ClickException) else str(caught.value)
    assert "\n" not in line
    return line


def test_data_parallelism_is_what_the_others_leave() -> None:
    ready = opened("--nodes", "4", "--tp", "8", "--pp", "2")
    assert ready.layout is not None
    assert (ready.world, ready.layout.dp, ready.assignment) == (32, 2, None)


@pytest.mark.parametrize("rule", [(), ("--rule", "cyclic")])
def test_gpus_that_make_no_whole_replica_are_left_over(rule: tuple[str, ...]) -> None:
    ready = opened("--nodes", "3", "--exclude", "node001:0", "--tp", "4", "--pp", "2", *rule)
    assert ready.world == 16
    if rule:
        assert ready.assignment is not None
        assert ready.assignment.ranks == 16


def test_gpus_that_are_left_over_are_told() -> None:
    notes = opened("--nodes", "4", "--tp", "5").cluster.notes
    assert "30 ranks: as many whole replicas as fit; 2 of 32 GPUs are left over (--world-size)" in notes
    assert not any("left over" in note for note in opened("--nodes", "4", "--tp", "8").cluster.notes)


def test_experts_need_their_ranks_too() -> None:
    ready = opened("--nodes", "3", "--tp", "4", "--ep", "4")
    assert ready.layout is not None
    assert (ready.world, ready.layout.dp) == (16, 4)


def test_given_sizes_make_the_ranks() -> None:
    assert opened("--nodes", "4", "--tp", "8", "--dp", "2").world == 16


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


def test_bundles_are_the_nodes_and_what_they_are() -> None:
    ready = opened("--bundles", "fixture:dgx-h100-healthy", "--bundles", "fixture:dgx-h100-gpu5-x4", "--tp", "8")
    assert ready.cluster.names == ("dgx-017", "dgx-040")
    assert (ready.cluster.system, ready.world) == ("DGX H100", 16)


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
