"""What the program writes of a result, as a text."""

import io
from collections.abc import Callable
from functools import partial
from typing import Any

from topodiag.report.interface import Style
from topodiag.report.page import print_drawn


def written(write: Callable[..., object], result: object, **style: Any) -> str:
    """What a format writes of a result in this style."""
    stream = io.StringIO()
    write(result, stream, Style(**style))
    return stream.getvalue()


def drawn(draw: Callable[..., object], result: object, **style: Any) -> str:
    """The page that is drawn of a result in this style."""
    return written(partial(print_drawn, draw), result, **style)
