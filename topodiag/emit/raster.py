"""A drawing as PNG or PDF, by cairosvg, which the extra `pictures` installs."""

from __future__ import annotations

from typing import Any

from topodiag.draw.svg import resolved
from topodiag.model.errors import TopodiagError

PNG_SCALE = 2.0
"""Pixels of the PNG for one of the drawing: sharp on screens of high density and on paper."""
MOST_PIXELS = 100_000_000
"""A larger PNG takes gigabytes in the programs that show it; it is drawn at a smaller scale."""


def to_png(svg: str) -> bytes:
    """The drawing as PNG, on white ground. Raises TopodiagError where cairosvg or its library is missing."""
    data: bytes = _cairosvg("png").svg2png(bytestring=resolved(svg).encode(), scale=_scale(svg))
    return data


def to_pdf(svg: str) -> bytes:
    """The drawing as a PDF of one page with its text as text. Raises TopodiagError as `to_png` does."""
    data: bytes = _cairosvg("pdf").svg2pdf(bytestring=resolved(svg).encode())
    return data


def _scale(svg: str) -> float:
    head = svg[: svg.find(">")]
    width, height = (float(head.partition(f' {name}="')[2].partition('"')[0]) for name in ("width", "height"))
    return float(min(PNG_SCALE, (MOST_PIXELS / max(width * height, 1.0)) ** 0.5))


def _cairosvg(kind: str) -> Any:
    try:
        import cairosvg  # noqa: PLC0415 - an extra, and slow to load
    except ImportError as error:
        raise TopodiagError(
            f"emit {kind} needs cairosvg, which is not installed", hint="pip install 'topodiag[pictures]'"
        ) from error
    except OSError as error:  # its wheel has no libcairo
        raise TopodiagError(
            f"emit {kind} needs the library libcairo.so.2", hint="apt-get install libcairo2, or dnf install cairo"
        ) from error
    return cairosvg
