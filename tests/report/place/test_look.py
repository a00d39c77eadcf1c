"""The layout drawn: what stands where, what is marked, and the same as SVG."""

import xml.etree.ElementTree as ET
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from topodiag.cli import cli
from topodiag.cli.errors import run
from topodiag.draw.layouts import look_svg, shades
from topodiag.model.cluster import Assignment, Cluster, Level
from topodiag.placement.view import Look, View, view_of
from topodiag.report.interface import Style
from topodiag.report.place.look import draw_look
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
    assert drawn(PACKED)[3:8] == ["      solved", "leaf-a", "  n0   0  0  1  1", "leaf-b", "  n3   x  2  2  ·"]


def test_nodes_of_one_nvlink_domain_split_nothing() -> None:
    assert view([0, 1, 3, 4], [0, 0, 1, 1], domain=[0, 0, 1, 1]).split_groups == 0


def test_a_group_larger_than_a_node_is_split_only_beyond_what_it_needs() -> None:
    assert view([0, 1, 2, 3, 4, 5], [0] * 6).split_groups == 0
    assert view([0, 1, 2, 4, 5, 8], [0] * 6).split_groups == 1


def test_groups_that_may_span_nodes_are_never_split_and_not_called_whole() -> None:
    spread = view([0, 4], [0, 0], together=False)
    assert (spread.split_groups, spread.summary) == (0, "its groups may span nodes")


def test_the_picture_has_a_square_per_gpu_and_outlines_what_is_split() -> None:
    names = ('<n0 "&', "n1", "n2", "n3")
    root = ET.fromstring(look_svg(Look(cluster(names), "tp", 2, (SPLIT, PACKED))))
    squares = [element for element in root.iter(f"{SVG}rect") if element.get("width") == "18"]
    assert len(squares) == 2 * 3 * 4  # two views, the three nodes that one of them uses
    assert sum(square.get("class") == "split" for square in squares) == 2
    assert sum(square.get("class") == "out" for square in squares) == 2
    assert any(element.text == '<n0 "&' for element in root.iter(f"{SVG}text"))


@pytest.mark.parametrize(("command", "beside"), [("audit", "packed"), ("solve", "solved")])
def test_a_command_draws_the_layout_beside_a_better_one_and_writes_the_picture(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str, beside: str
) -> None:
    place = tmp_path / "look.svg"
    args = ["place", command, "--nodes", "4", "--tp", "8", "--rule", "cyclic", "--svg", str(place), "--picture"]
    run(cli, args)
    text = capsys.readouterr().out
    assert "4 of 4 groups split" in text
    assert f"{beside}  no group is split" in text
    ET.fromstring(place.read_text())


def large(nodes: int = 100, leaf: int = 0, names: Sequence[str] = ()) -> Look:
    """Two GPUs a node; the groups of two on the first ten nodes are split between neighbours, the last node is idle."""
    group = np.arange(nodes) // leaf if leaf else np.zeros(nodes, int)
    levels = (Level("leaf", group, 5, 45, tuple(names)),)
    usable = np.ones((nodes, 2), bool)
    fabric = Cluster(tuple(f"n{number:05d}" for number in range(nodes)), usable, np.arange(nodes), levels, 1, 400)
    ids = np.arange(2 * (nodes - 1)) // 2
    slots = np.arange(2 * (nodes - 1))
    crossed = slots.copy()
    crossed[:20:4], crossed[2:20:4] = slots[2:20:4], slots[:20:4]
    views = [view_of(fabric, Assignment(each), ids, title, together=True)
             for each, title in ((crossed, "as given"), (slots, "solved"))]  # fmt: skip
    other = np.full(views[0].group.shape, -1)
    other[-1] = 7  # so that the idle node is in the picture
    used = View("other", other, np.zeros(other.shape, bool), 0, 1)
    return Look(fabric, "tp", 2, (*views, used))


def page_of(look: Look, width: int = 120, *, verbose: int = 0) -> list[str]:
    page = Page(Style(width=width, verbose=verbose))
    draw_look(page, look)
    return [line.plain for line in page.lines]


def test_many_nodes_are_a_sign_each_and_one_group_is_drawn_gpu_by_gpu() -> None:
    lines = page_of(large(100))
    at = next(number for number, line in enumerate(lines) if "as given" in line and "solved" in line)
    assert lines[at + 1].split()[:2] == ["n00000", "#" * 10 + "o" * 23]
    assert lines[at + 4].split()[1] == "."
    assert any("a sign is a node: " in line for line in lines)
    assert "for example tp group 0  (-v draws all nodes)" in lines
    assert sum(line.startswith("  n0") for line in lines) == 4 + 2
    assert sum(line.startswith("  n0") for line in page_of(large(100), verbose=1)) == 100


def test_a_sign_is_a_switch_where_there_are_too_many_nodes() -> None:
    lines = page_of(large(12_000, 16))
    assert any("a sign is a leaf of 16 nodes: " in line for line in lines)
    assert len(lines) < 60
    first = next(line for line in lines if line.startswith("  leaf 1 "))
    assert first.split()[2].startswith("6o")  # ten of its sixteen nodes


@pytest.mark.parametrize("width", [40, 80, 160])
def test_an_overview_fits_its_page(width: int) -> None:
    assert max(map(len, page_of(large(3000, 7), width=width))) <= width


def test_the_picture_of_many_nodes_is_small_and_whole() -> None:
    text = look_svg(large(12_000, 16))
    assert len(text) < 600_000
    root = ET.fromstring(text)
    paths = [path for path in root.iter(f"{SVG}path") if "h6v6" in path.get("d", "")]
    assert sum(path.get("d", "").count("h6v6") for path in paths) == 3 * 12_000
    red = [path for path in paths if path.get("class") == "shade5"]
    assert [path.get("d", "").count("z") for path in red] == [10]


@pytest.mark.parametrize(("share", "shade"), [(-1, 0), (0, 1), (0.01, 2), (0.5, 3), (0.99, 4), (1, 5)])
def test_a_node_is_the_redder_the_more_of_it_is_split(share: float, shade: int) -> None:
    assert shades(np.asarray([share])).tolist() == [shade]


def test_an_unknown_dimension_is_one_clear_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(cli, ["place", "audit", "--nodes", "4", "--tp", "8", "--dimension", "xp"]) == 2
    assert "the job has tp, dp" in capsys.readouterr().err
