"""A copy of the tree in which tests write and run programs, as it was again after each."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

ROOT = Path(__file__).parents[1]
COPIED = ("topodiag", "probes", "tools", "tests", "benchmarks", "fixtures/checks", "pyproject.toml")
"""What is copied. Of the other fixtures each is linked: no test changes one that is there."""
_COMPILED = "__pycache__"


class Copy:
    """The tree below a folder, with what is compiled of it already: each program would compile all that it imports."""

    def __init__(self, into: Path) -> None:
        self.place = into
        _copy_tree(into)
        self._files = {path: (path.read_bytes(), _state(path)) for path in _files(into)}
        self._folders = set(_folders(into))

    @contextmanager
    def for_a_test(self) -> Iterator[Path]:
        """The tree; what is changed, made or taken away there is as before when the test ends."""
        try:
            yield self.place
        finally:
            for path in list(_files(self.place)):
                if path not in self._files:
                    path.unlink()
            for path in sorted(set(_folders(self.place)) - self._folders, reverse=True):
                shutil.rmtree(path)
            for path, (data, state) in self._files.items():
                if not path.is_file() or _state(path) != state:
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_bytes(data)
                    os.utime(path, ns=(state[0], state[0]))  # what was compiled of it is known by this time


def _copy_tree(into: Path) -> None:
    for name in COPIED:
        (into / name).parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, into / name, copy_function=_copy)
        else:
            shutil.copy2(ROOT / name, into / name)
    for folder in (ROOT / "fixtures").iterdir():
        if folder.name in {"checks", _COMPILED} or not folder.is_dir():
            continue
        (into / "fixtures" / folder.name).mkdir()
        for inner in folder.iterdir():
            (into / "fixtures" / folder.name / inner.name).symlink_to(inner)


def _copy(source: str, target: str) -> None:
    """Modules that Python compiled are replaced and never written to: a second name for the same file is enough."""
    if source.endswith(".pyc"):
        with suppress(OSError):  # gone meanwhile, or on another disk
            os.link(source, target)
    else:
        shutil.copy2(source, target)


def _files(tree: Path) -> Iterator[Path]:
    for folder, inner, names in os.walk(tree):
        inner[:] = [name for name in inner if name != _COMPILED]
        yield from (path for path in (Path(folder, name) for name in names) if not path.is_symlink())


def _folders(tree: Path) -> Iterator[Path]:
    for folder, inner, _ in os.walk(tree):
        inner[:] = [name for name in inner if name != _COMPILED]
        yield Path(folder)


def _state(path: Path) -> tuple[int, int]:
    row = path.stat()
    return row.st_mtime_ns, row.st_size
