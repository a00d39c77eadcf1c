"""`emit picture` as PNG and PDF, or one clear line on what to install."""

import builtins
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.emit.test_pictures import gpu_node
from topodiag.cli import cli
from topodiag.cli.errors import run
from topodiag.draw.node import draw_node
from topodiag.draw.picture import picture_of
from topodiag.emit import raster
from topodiag.emit.raster import to_pdf, to_png


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
