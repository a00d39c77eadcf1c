"""Reads files below a root and writes them as one tree file (see docs/bundle.md); one bad file costs one line.

All access to /sys, /proc, /etc and /var goes through a `Root`, so a live host, a copied tree and a test are the same.
"""

import errno
import os
import stat
from typing import Callable, Iterable, List, Optional

FILE_LIMIT = 64 * 1024
"""Bytes of one file; sysfs gives at most a page per file, logs are cut on purpose."""
TREE_LIMIT = 8 * 1024 * 1024
"""Bytes of one tree file."""
TREE_FILES = 200000
"""Files of one tree: a host with every virtual function switched on has some tens of thousands."""
DENIED = (errno.EACCES, errno.EPERM)
GONE = (errno.ENOENT, errno.ENOTDIR, errno.ENODEV, errno.ENXIO)
"""Not there, or its device has just left: nothing to tell."""


class Root:
    """File access below a folder; paths are relative to it, without a leading slash."""

    def __init__(self, path: str = "/") -> None:
        self.path = os.path.abspath(path)
        self.live = self.path == "/"
        self._real = os.path.realpath(self.path)

    def join(self, path: str) -> str:
        """The real place of a path. A link out of a root that is not `/` is refused as if it were a loop."""
        whole = os.path.join(self.path, path.lstrip("/"))
        if not self.live:
            real = os.path.realpath(whole)
            if real != self._real and not real.startswith(self._real + os.sep):
                raise OSError(errno.ELOOP, "the link leaves the root", path)
        return whole

    def read(self, path: str, limit: int = FILE_LIMIT, tail: bool = False) -> bytes:
        """At most `limit` + 1 bytes of a regular file, from its start or, with `tail`, of its end."""
        handle = os.open(self.join(path), os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        try:
            info = os.fstat(handle)
            if not stat.S_ISREG(info.st_mode):
                raise OSError(errno.EISDIR if stat.S_ISDIR(info.st_mode) else errno.EINVAL, "not a regular file")
            if tail and info.st_size > limit:
                os.lseek(handle, info.st_size - limit, os.SEEK_SET)
            parts: List[bytes] = []
            left = limit + 1
            while left > 0:
                part = os.read(handle, min(left, 65536))
                if not part:
                    break
                parts.append(part)
                left -= len(part)
            return b"".join(parts)
        finally:
            os.close(handle)

    def names(self, path: str) -> List[str]:
        """Names in a folder, sorted; empty when there is no such folder or it cannot be read."""
        try:
            return sorted(os.listdir(self.join(path)))
        except OSError:
            return []

    def is_dir(self, path: str) -> bool:
        try:
            return os.path.isdir(self.join(path))
        except OSError:
            return False

    def exists(self, path: str) -> bool:
        try:
            return os.path.lexists(self.join(path))
        except OSError:
            return False

    def text(self, path: str) -> str:
        """A small file stripped of outer blanks, or an empty text when it cannot be read."""
        try:
            return self.read(path).decode("utf-8", "replace").strip()
        except OSError:
            return ""


def escape_path(path: str) -> str:
    return path.replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n").replace("\r", "\\r")


def escape_text(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\r", "\\r").replace("\n", "\\n")


def error_text(error: OSError) -> str:
    """`EINVAL Invalid argument`."""
    name = errno.errorcode.get(error.errno or 0, "EUNKNOWN")
    return "%s %s" % (name, error.strerror or "")


class Tree:
    """Collects the lines of one tree file; it is whole at any time, so a read that hangs loses the rest only."""

    def __init__(self, root: Root, limit: int = TREE_LIMIT, files: int = TREE_FILES) -> None:
        self.root = root
        self.truncated = False
        self.denied = 0
        """Files that exist and are for other users."""
        self.found = 0
        """Lines that are not errors."""
        self._limit = limit
        self._files = files
        self._lines: List[str] = []
        self._size = 0

    def _add(self, op: str, path: str, text: str) -> None:
        line = "%s %s\t%s\n" % (op, escape_path(path.lstrip("/")), escape_text(text))
        if self._size + len(line) > self._limit:
            self.truncated = True
            return
        self._size += len(line)
        self._lines.append(line)
        if op != "!":
            self.found += 1

    def _allow(self) -> bool:
        self._files -= 1
        if self._files < 0 or self._size >= self._limit:
            self.truncated = True
            return False
        return True

    def _failed(self, path: str, error: OSError) -> None:
        if error.errno in GONE:
            return
        if error.errno in DENIED:
            self.denied += 1
        self._add("!", path, error_text(error))

    def line(self, path: str, text: str) -> None:
        """One line of content, whatever is in it."""
        self._add("=", path, text)

    def put(self, path: str, text: str) -> None:
        """A file's content, known already, line by line."""
        for line in text.split("\n"):
            self._add("=", path, line)

    def text(self, path: str, limit: int = FILE_LIMIT, keep: Optional[Callable[[str], str]] = None) -> Optional[str]:
        """Read a text file, or what `keep` keeps of it, into the tree. Returns it, or None when it is not there or
        could not be read."""
        if not self._allow():
            return None
        try:
            data = self.root.read(path, limit)
        except OSError as error:
            self._failed(path, error)
            return None
        if len(data) > limit:
            self.truncated = True
            data = data[:limit]
        text = data.decode("utf-8", "surrogateescape")
        if text.endswith("\n"):
            text = text[:-1]
        if keep is not None:
            text = keep(text)
        self.put(path, text)
        return text

    def texts(self, folder: str, names: Iterable[str]) -> None:
        for name in names:
            self.text("%s/%s" % (folder, name))

    def binary(self, path: str, limit: int) -> Optional[int]:
        """Read bytes into the tree as hexadecimal; returns how many there were."""
        if not self._allow():
            return None
        try:
            data = self.root.read(path, limit)[:limit]
        except OSError as error:
            self._failed(path, error)
            return None
        self._add("x", path, "".join("%02x" % byte for byte in bytearray(data)))
        return len(data)

    def link(self, path: str) -> Optional[str]:
        """Record a symbolic link; returns its target, or None when there is none."""
        if not self._allow():
            return None
        try:
            target = os.readlink(os.path.join(self.root.path, path.lstrip("/")))
        except OSError as error:
            if error.errno != errno.EINVAL:  # not a link: nothing to tell
                self._failed(path, error)
            return None
        self._add(">", path, target)
        return target

    def folder(self, path: str) -> List[str]:
        """Record that a folder is there; returns the names in it, sorted."""
        try:
            names = sorted(os.listdir(self.root.join(path)))
        except OSError as error:
            self._failed(path, error)
            return []
        self._add("d", path, "")
        return names

    def mark(self, path: str) -> None:
        """Record a folder by its name alone."""
        self._add("d", path, "")

    def value(self) -> bytes:
        """The tree file as it stands."""
        return "".join(list(self._lines)).encode("utf-8", "surrogateescape")
