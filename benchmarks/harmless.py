"""Prints what is said of ordinary texts, in which nothing of a cluster is at fault: each alarm is a false one.

    python benchmarks/harmless.py [FOLDER...]     default: the documents of this machine's packages and of its Python

Handbooks, lists of changes, licences and source files hold the words of faults in any order. Each text is judged alone,
by its first 256 KiB.
"""

from __future__ import annotations

import gzip
import json
import multiprocessing
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from topodiag.api import diagnose
from topodiag.model.errors import TopodiagError

DEFAULT = (Path("/usr/share/doc"), Path(sysconfig.get_paths()["purelib"]))
KINDS = frozenset({"", ".md", ".rst", ".txt", ".gz", ".debian", ".py", ".go", ".c", ".h", ".sh", ".yaml"})
MOST_BYTES, MOST_TEXTS = 1 << 18, 4000
LOUD = ("error", "warning")


def texts(folders: list[Path]) -> Iterator[tuple[Path, bytes]]:
    """So many texts at most, spread evenly over what the folders hold."""
    paths = sorted(path for folder in folders for path in folder.rglob("*") if path.suffix.lower() in KINDS)
    paths = [path for path in paths if path.is_file() and not path.is_symlink()]
    for path in paths[:: max(1, len(paths) // MOST_TEXTS)]:
        try:
            with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as held:
                yield path, held.read(MOST_BYTES)
        except (OSError, EOFError):
            continue


def alarms(text: bytes, name: str) -> list[dict[str, object]] | None:
    """Findings that call something faulty; None where the text is no evidence."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, name)
        path.write_bytes(text)
        try:
            said = json.loads(diagnose(str(path)).to_json())
        except TopodiagError:
            return None
    return [each for each in said["findings"] if each["severity"] in LOUD]


def judged(given: tuple[Path, bytes]) -> tuple[Path, list[dict[str, object]] | None]:
    """A text's path and its alarms."""
    path, text = given
    return path, alarms(text, path.name.removesuffix(".gz") or "text")


def main() -> None:
    given = [Path(each) for each in sys.argv[1:]] or list(DEFAULT)
    count = taken = false = 0
    with multiprocessing.get_context("fork").Pool(2, maxtasksperchild=400) as pool:
        for path, found in pool.imap(judged, texts(given), chunksize=8):
            count += 1
            taken += found is not None
            if found:
                false += 1
                quotes = found[0].get("evidence") or [{}]
                quoted = quotes[0].get("text", "") if isinstance(quotes, list) else ""
                head = f"{found[0]['id']} {found[0]['severity']:8}{found[0]['confidence']:7}{path}"
                print(f"{head}\n        {quoted[:110]}", flush=True)
            if count % 500 == 0:
                print(f"{count} texts, {false} with a false alarm", file=sys.stderr, flush=True)
    print()
    for what, number in (("texts", count), ("taken as evidence", taken), ("with a false alarm", false)):
        print(f"{what:28}{number:6}")


if __name__ == "__main__":
    main()
