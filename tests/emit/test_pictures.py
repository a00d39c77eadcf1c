"""Pictures: PNG, PDF and SVG, and what is drawn in them."""

import builtins
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topodiag.app.scan import pictured
from topodiag.cli import cli
from topodiag.cli.errors import run
from topodiag.draw.node import draw_node
from topodiag.draw.picture import NVSWITCH, Picture, picture_of
from topodiag.emit import raster
from topodiag.emit.dot import SICK, to_dot
from topodiag.emit.raster import to_pdf, to_png
from topodiag.evidence.intake.collected import fixtures
from topodiag.model.devices import Gpu, Nic, NicPort, NumaNode
from topodiag.model.finding import Cost, Finding, Severity, Where
from topodiag.model.links import Link, LinkKind
from topodiag.model.node import Node
from topodiag.model.provenance import Fact
from topodiag.report.emit.picture import titled_picture
from topodiag.words.text import without_steering


def needs_cairo() -> None:
    try:
        import cairosvg  # noqa: F401, PLC0415
    except (ImportError, OSError) as error:
        pytest.skip(f"no PNG and no PDF is drawn here: {error}")


def drawing() -> str:
    return draw_node(picture_of(gpu_node(), [], "title", "verdict"))


def test_a_png_and_a_pdf_are_made_of_the_drawing() -> None:
    needs_cairo()
    assert to_png(drawing()).startswith(b"\x89PNG\r\n")
    assert to_pdf(drawing()).startswith(b"%PDF-")


def test_the_same_drawing_gives_the_same_png() -> None:
    needs_cairo()
    assert to_png(drawing()) == to_png(drawing())


def test_a_very_large_drawing_is_drawn_at_a_smaller_scale() -> None:
    assert raster._scale('<svg width="1000" height="1000">') == 2
    assert raster._scale('<svg width="100000" height="10000">') == pytest.approx(0.316, abs=0.01)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ImportError("no module"), "pip install 'topodiag[pictures]'"),
        (OSError("no library"), "apt-get install libcairo2"),
    ],
)
def test_what_is_missing_is_one_clear_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, error: Exception, words: str
) -> None:
    real = builtins.__import__

    def importing(name: str, *args: Any, **kwargs: Any) -> Any:
        if name == "cairosvg":
            raise error
        return real(name, *args, **kwargs)

    monkeypatch.delitem(sys.modules, "cairosvg", raising=False)
    monkeypatch.setattr(builtins, "__import__", importing)
    out = tmp_path / "node.png"
    assert run(cli, ["emit", "picture", "fixture:t4-box", "-o", str(out)]) == 2
    message = capsys.readouterr().err
    assert words in message
    assert "Traceback" not in message
    assert len(message.strip().splitlines()) == 2, "what is missing, and the hint"
    assert not out.exists()


# --- pictures of nodes: every device is there once, what is sick is red, and no name can break the file


SVG = "{http://www.w3.org/2000/svg}"


def picture(source: str) -> Picture:
    return titled_picture(*pictured(source))


def texts(svg: str) -> list[str]:
    return [element.text or "" for element in ElementTree.fromstring(svg).iter(f"{SVG}text")]


@pytest.mark.parametrize("name", [name for name in fixtures() if name != "no-gpu"])
def test_each_device_of_a_captured_machine_is_there_once(name: str) -> None:
    drawing = picture(f"fixture:{name}")
    shown = texts(draw_node(drawing))
    boxes = [box for socket in drawing.sockets for box in socket.leaves() if box.kind in ("gpu", "nic")]
    assert boxes
    for box in boxes:
        assert shown.count(box.lines[0]) == 1, box.lines[0]
        assert to_dot(drawing).count(f'  "{box.key}" [label=') == 1


def test_two_runs_draw_the_same() -> None:
    first, second = picture("fixture:hgx-a100"), picture("fixture:hgx-a100")
    assert draw_node(first) == draw_node(second)
    assert to_dot(first) == to_dot(second)


def test_a_healthy_machine_has_no_red() -> None:
    drawing = picture("fixture:dgx-h100-healthy")
    assert 'class="gpu sick"' not in draw_node(drawing)
    assert "found by a check" not in draw_node(drawing)
    assert SICK not in to_dot(drawing)


def test_links_that_are_down_are_red_and_carry_the_id() -> None:
    svg = draw_node(picture("fixture:dgx-h100-gpu3-12of18-nvlink"))
    shown = texts(svg)
    assert shown[shown.index("12 of 18") + 1] == "NVL001", "on a line of its own: the next count stands beside it"
    assert svg.count('class="nvlink sick"') == 1
    assert svg.count('class="gpu sick"') == 1


def test_a_narrow_link_is_red_and_says_what_it_could_do() -> None:
    svg = draw_node(picture("fixture:dgx-h100-gpu5-x4"))
    assert "Gen5 x4 of 16" in texts(svg)
    assert svg.count('class="pcie sick"') == 2, "the link, and its line in the legend"


def test_a_faulty_link_is_three_strokes_intended_negotiated_used() -> None:
    svg = draw_node(picture("fixture:dgx-h100-gpu3-12of18-nvlink"))
    assert svg.count('class="intended"') == 1
    assert "<title>intended 370.8 GB/s</title>" in svg
    assert "<title>negotiated 247.2 GB/s</title>" in svg
    shown = texts(svg)
    assert shown[shown.index("intended") + 1] == "370.8 GB/s"
    assert shown[shown.index("negotiated") + 1] == "247.2 GB/s"
    assert shown[shown.index("used") + 1] == "not in the evidence"
    assert any(text.startswith("6 links x 20.6 GB/s = 123.6 GB/s") for text in shown), "how the figures follow"


def test_a_setting_takes_from_what_is_used_and_not_from_what_was_negotiated() -> None:
    finding = Finding("GDR001", Severity.ERROR, "m", "o", "e", ("f",), Where(nics=("mlx5_0",)), Cost(26, 0.52))
    (edge,) = picture_of(gpu_node(), [finding], "t", "v").edges
    assert (edge.levels.intended, edge.levels.negotiated) == (50, 50)
    assert edge.levels.used == pytest.approx(24)


@pytest.mark.parametrize("name", ["dgx-h100-healthy", "hgx-b200", "l40s-pcie-acs-on", "gb200-tray"])
def test_a_wide_node_stands_on_both_sides_of_its_fabric_and_fits_a_page(name: str) -> None:
    drawing = picture(f"fixture:{name}")
    root = ElementTree.fromstring(draw_node(drawing))
    assert float(root.attrib["width"]) <= 1168, "the room of a page at 1280 pixels"
    kinds = {"gpu", "nic", "cpu", "dim", "switch"}
    drawn = [
        element.attrib for element in root.iter(f"{SVG}rect") if kinds & set(element.attrib.get("class", "").split())
    ]
    boxes = [[float(record[key]) for key in ("x", "y", "width", "height")] for record in drawn]
    boxes = [box for box in boxes if box[3] > 20]  # without the legend
    leaves = sum(leaf is not socket for socket in drawing.sockets for leaf in socket.leaves())
    assert len(boxes) >= leaves
    for at, (x, y, wide, high) in enumerate(boxes):
        for left, top, w, h in boxes[at + 1 :]:
            assert x + wide <= left or left + w <= x or y + high <= top or top + h <= y, "no box covers another"


def test_a_mesh_is_drawn_link_by_link_and_a_switched_fabric_as_one_bar() -> None:
    mesh = picture("fixture:dgx1v-hybrid-mesh")
    assert not any(NVSWITCH in (line.a, line.b) for line in mesh.lines)
    assert len([line for line in mesh.lines if line.kind == "nvlink"]) == 16
    svg = draw_node(picture("fixture:hgx-b200"))
    assert svg.count('class="nvswitch"') == 1


def gpu_node(*, host: str = "h", gpu_name: str = "G", nic: str = "mlx5_0") -> Node:
    gpus = tuple(Gpu(index, f"0000:0{index}:00.0", name=Fact(gpu_name), numa=Fact(0)) for index in range(2))
    nics = (Nic(nic, numa=Fact(0), ports=(NicPort(1, state=Fact("DOWN")),)),)
    links = (Link("gpu:0", NVSWITCH, LinkKind.NVLINK, 18),)
    return Node(host, numa=(NumaNode(0, Fact("0-3")),), gpus=gpus, nics=nics, links=links)


def test_a_gpu_that_lost_all_its_links_keeps_its_line_to_the_fabric() -> None:
    finding = Finding("TOP004", Severity.ERROR, "m", "o", "e", ("f",), Where(gpus=("GPU1",)))
    drawing = picture_of(gpu_node(), [finding], "t", "v")
    (lost,) = [line for line in drawing.lines if line.sick]
    assert (lost.a, lost.label, lost.sick) == ("gpu:1", "0", ("TOP004",))


def test_a_port_that_is_down_says_so() -> None:
    assert "DOWN" in texts(draw_node(picture_of(gpu_node(), [], "t", "v")))


@given(st.text(max_size=60), st.text(max_size=60), st.text(min_size=1, max_size=60))
def test_no_name_breaks_the_file(host: str, gpu: str, nic: str) -> None:
    drawing = picture_of(gpu_node(host=host, gpu_name=gpu, nic=nic), [], f"{host} {gpu}", nic)
    assert ElementTree.fromstring(draw_node(drawing)).tag == f"{SVG}svg"
    quotes = re.sub(r"\\.", "", to_dot(drawing)).count('"')
    assert quotes % 2 == 0
    for text in (to_dot(drawing), draw_node(drawing)):
        assert without_steering(text.replace("\n", "")) == text.replace("\n", "")


@given(st.integers(0, 20), st.integers(0, 20), st.integers(1, 8))
def test_machines_of_any_size_are_drawn(gpus: int, nics: int, sockets: int) -> None:
    node = replace(
        gpu_node(),
        numa=tuple(NumaNode(place, Fact(f"{place}")) for place in range(sockets)),
        gpus=tuple(Gpu(index, None, numa=Fact(index % sockets)) for index in range(gpus)),
        nics=tuple(Nic(f"n{index}", numa=Fact(index % sockets)) for index in range(nics)),
        links=(),
    )
    shown = texts(draw_node(picture_of(node, [], "t", "v")))
    assert sum(text.startswith("GPU") for text in shown) == gpus


def test_graphviz_reads_it() -> None:
    if shutil.which("dot") is None:
        pytest.skip("graphviz is not installed: the DOT text is not tried with it")
    drawing: Picture = picture("fixture:dgx-h100-gpu3-12of18-nvlink")
    done = subprocess.run(
        ["dot", "-Tsvg"], input=to_dot(drawing), capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "GPU3" in done.stdout
