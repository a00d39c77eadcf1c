"""The layout drawn: what stands where, what is marked, and the same as SVG."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from topodiag.cli import cli
from topodiag.cli.errors import run
from topodiag.model.cluster import Assignment, Cluster, Level
from topodiag.report.interface import Style
from topodiag.report.place_look import Look, View, draw_look, view_of
from topodiag.report.place_look_svg import look_svg
from topodiag.report.text import Page

SVG = "{http://www.w3.org/2000/svg}"


def cluster(names: Sequence[str] = ("n0", "n1", "n2", "n3"), domain: Sequence[int] = (0, 1, 2, 3)) -> Cluster:
    usable = np.ones((4, 4), bool)
    usable[3, 0] = False
    levels = (Level("leaf", np.asarray([0, 0, 1, 1]), 5, 45, ("leaf-a", "leaf-b")),)
    return Cluster(tuple(names), usable, np.asarray(domain), levels, 1, 400)


def view(slots: list[int], ids: list[int], title: str = "as given", *, together: bool = True,
         domain: Sequence[int] = (0, 1, 2, 3)) -> View:  # fmt: skip
    return view_of(cluster(domain=domain), Assignment(np.asarray(slots)), np.asarray(ids), title, together=together)


def drawn(*views: View, width: int = 120, names: Sequence[str] = ("n0", "n1", "n2", "n3")) -> list[str]:
    page = Page(Style(width=width))
    draw_look(page, Look(cluster(names), "tp", 2, views))
    return [line.plain for line in page.lines]


PACKED = view([0, 1, 2, 3, 13, 14], [0, 0, 1, 1, 2, 2], "solved")
SPLIT = view([0, 1, 3, 4, 13, 14], [0, 0, 1, 1, 2, 2])


def test_gpus_carry_the_number_of_their_group_below_their_switch() -> None:
    assert drawn(PACKED)[3:8] == [
        "      solved",
        "leaf-a",
        "  n0   0  0  1  1",
        "leaf-b",
        "  n3   x  2  2  ·",
    ]


def test_split_groups_stand_in_brackets_and_are_counted() -> None:
    lines = drawn(SPLIT)
    assert "as given  1 of 3 groups split" in lines
    assert "  n0   0  0  · [1]" in lines
    assert "  n1  [1] ·  ·  ·" in lines


def test_nodes_of_one_nvlink_domain_split_nothing() -> None:
    assert view([0, 1, 3, 4], [0, 0, 1, 1], domain=[0, 0, 1, 1]).split_groups == 0


def test_a_group_larger_than_a_node_is_split_only_beyond_what_it_needs() -> None:
    assert view([0, 1, 2, 3, 4, 5], [0] * 6).split_groups == 0
    assert view([0, 1, 2, 4, 5, 8], [0] * 6).split_groups == 1


def test_groups_that_may_span_nodes_are_never_split() -> None:
    assert view([0, 4], [0, 0], together=False).split_groups == 0


def test_two_layouts_stand_side_by_side_where_they_fit_and_below_each_other_where_not() -> None:
    assert any("as given" in line and "solved" in line for line in drawn(SPLIT, PACKED, width=40))
    below = drawn(SPLIT, PACKED, SPLIT, width=40)
    assert not any("as given" in line and "solved" in line for line in below)
    assert max(map(len, below)) <= 40


def test_names_from_outside_cannot_reach_the_terminal() -> None:
    assert not any("\x1b" in line for line in drawn(PACKED, names=("\x1b[31mred", "n1", "n2", "n3")))


def test_the_picture_has_a_square_per_gpu_and_outlines_what_is_split() -> None:
    names = ('<n0 "&', "n1", "n2", "n3")
    root = ET.fromstring(look_svg(Look(cluster(names), "tp", 2, (SPLIT, PACKED))))
    squares = [each for each in root.iter(f"{SVG}rect") if each.get("width") == "18"]
    assert len(squares) == 2 * 3 * 4  # two views, the three nodes that one of them uses
    assert sum(each.get("class") == "split" for each in squares) == 2
    assert sum(each.get("class") == "out" for each in squares) == 2
    assert any(each.text == '<n0 "&' for each in root.iter(f"{SVG}text"))


@pytest.mark.parametrize("solved", [(), ("--solved",)])
def test_the_command_draws_and_writes_the_picture(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], solved: tuple[str, ...]
) -> None:
    place = tmp_path / "look.svg"
    args = ["place", "look", "--nodes", "4", "--tp", "8", "--rule", "cyclic", "--svg", str(place), *solved]
    assert run(cli, args) == 0
    text = capsys.readouterr().out
    assert "as given  4 of 4 groups split" in text
    assert ("solved  no group is split" in text) is bool(solved)
    ET.fromstring(place.read_text())


def test_an_unknown_dimension_is_one_clear_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(cli, ["place", "look", "--nodes", "4", "--tp", "8", "--dimension", "xp"]) == 2
    assert "the job has tp, dp" in capsys.readouterr().err
