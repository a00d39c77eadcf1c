"""Files that appear whole or not at all: written beside their place, then moved there."""

import os
from contextlib import contextmanager
from typing import BinaryIO, Iterator


@contextmanager
def whole(path: str, part: str) -> Iterator[BinaryIO]:
    """The stream to write `path` to; until it ends well, what was written is in `part`, of the same folder. Raises
    OSError, and leaves neither file behind then."""
    try:
        with open(part, "wb") as handle:
            yield handle
        os.replace(part, path)
    except BaseException:
        try:
            os.unlink(part)
        except OSError:
            pass
        raise
