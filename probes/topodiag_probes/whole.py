"""Files that appear whole or not at all: written beside their place, then moved there."""

import os
import stat
import tempfile
from contextlib import contextmanager
from typing import BinaryIO, Iterator


@contextmanager
def whole(path: str, private: bool = False) -> Iterator[BinaryIO]:
    """The stream to write `path` to, whose mode a file that is there keeps; a new one is for its owner alone where it
    is `private`, else as the mask has it. Raises OSError, and leaves nothing behind then."""
    handle, part = tempfile.mkstemp(".part", ".", os.path.dirname(path) or ".")
    try:
        with os.fdopen(handle, "wb") as stream:
            yield stream
        os.chmod(part, _mode(path, private))
        os.replace(part, path)
    except BaseException:
        try:
            os.unlink(part)
        except OSError:
            pass
        raise


def _mode(path: str, private: bool) -> int:
    try:
        return stat.S_IMODE(os.stat(path).st_mode) & 0o777
    except OSError:
        mask = os.umask(0o077)
        os.umask(mask)
        return 0o600 if private else 0o666 & ~mask
