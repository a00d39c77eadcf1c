"""Prints whether the same evidence in another dress gets the same verdict: each incident, packed, coloured, quoted,
given twice, an hour later; and cut, where the verdict may only be less certain.

    python benchmarks/transforms.py [FOLDER...] [--only NAME,...]     default: fixtures/incidents

Compared are the state and the first cause. Prints each miss, and how many of all were right. The exit code is 1 where
one was not.
"""

from __future__ import annotations

import argparse
import gzip
import io
import re
import shutil
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from topodiag.app.diagnose import diagnose
from topodiag.model.errors import TopodiagError

FOLDER = Path(__file__).resolve().parents[1] / "fixtures" / "incidents"
Answer = tuple[str, str, str]
"""State of the verdict, the id of its first cause, "" for none, and how well that is founded."""
CERTAIN = ("established", "likely", "hypothesis", "unknown", "")
_LEFT_OUT = ("truth.json", "README.md", "case.json", "expected.json")
_TIME = re.compile(r"(?<!\d)(\d{4}-\d\d-\d\d[T ])(\d\d)(:\d\d:\d\d)")
_GREPPED = re.compile(r"NCCL (?:INFO|WARN)|Xid|error")


def texts(folder: Path) -> Iterator[tuple[Path, str, str]]:
    """Path, text and packing of each file that is a text; captures and other archives are left as they are."""
    for path in sorted(each for each in folder.rglob("*") if each.is_file()):
        data = path.read_bytes()
        packed = "gzip" if data[:2] == b"\x1f\x8b" else ""
        try:
            text = (gzip.decompress(data) if packed else data).decode("utf-8")
        except (UnicodeDecodeError, OSError):
            continue
        inside = any(each.name == "manifest.json" for each in path.parent.iterdir())
        if not inside and "\0" not in text and path.suffix in _LINES | {".gz"}:
            yield path, text, packed


_LINES = {".log", ".txt", ".out", ".err", ""}
"""Names of texts that are read by lines: what is added to a line of JSON or XML breaks it."""


def rewritten(change: Callable[[str], str]) -> Callable[[Path], Path]:
    """A transform that changes each text and leaves the rest."""

    def made(folder: Path) -> Path:
        for path, text, packed in texts(folder):
            data = change(text).encode()
            path.write_bytes(gzip.compress(data) if packed else data)
        return folder

    return made


def by_line(change: Callable[[str], str]) -> Callable[[Path], Path]:
    return rewritten(lambda text: "".join(change(line) for line in text.splitlines(keepends=True)))


def as_tar(mode: str, name: str) -> Callable[[Path], Path]:
    def made(folder: Path) -> Path:
        packed = folder.parent / name
        with tarfile.open(packed, mode) as archive:  # type: ignore[call-overload]
            archive.add(folder, "incident")
        return packed

    return made


def as_zip(folder: Path) -> Path:
    packed = folder.parent / "incident.zip"
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(each for each in folder.rglob("*") if each.is_file()):
            archive.write(path, f"incident/{path.relative_to(folder)}")
    return packed


def zip_in_tar(folder: Path) -> Path:
    packed = folder.parent / "incident.tar"
    with tarfile.open(packed, "w") as archive:
        data = as_zip(folder).read_bytes()
        member = tarfile.TarInfo("incident.zip")
        member.size = len(data)
        archive.addfile(member, io.BytesIO(data))
    return packed


def each_packed(folder: Path) -> Path:
    for path, text, packed in texts(folder):
        if not packed:
            path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(text.encode()))
            path.unlink()
    return folder


def packed_in_chunks(folder: Path) -> Path:
    """Each text as `cat` joins the parts of a log that a rotation packed."""
    for path, text, _ in texts(folder):
        data = text.encode()
        parts = (data[at : at + CHUNK] for at in range(0, len(data), CHUNK))
        path.write_bytes(b"".join(map(gzip.compress, parts)))
    return folder


CHUNK = 10_000


def twice(folder: Path) -> Path:
    shutil.copytree(folder, folder.parent / "again")
    (folder / "copy").mkdir()
    (folder.parent / "again").rename(folder / "copy" / "again")
    return folder


def hour_later(match: re.Match[str]) -> str:
    return f"{match[1]}{(int(match[2]) + 1) % 24:02d}{match[3]}" if int(match[2]) < 23 else match[0]


def cut(text: str) -> str:
    return text[: len(text) * 9 // 10]


TRANSFORMS: dict[str, Callable[[Path], Path]] = {
    "as tar.gz": as_tar("w:gz", "incident.tar.gz"),
    "as tar.xz": as_tar("w:xz", "incident.tar.xz"),
    "as zip": as_zip,
    "a zip in a tar": zip_in_tar,
    "each file packed": each_packed,
    "packed in chunks": packed_in_chunks,
    "coloured by grep": rewritten(
        lambda text: re.sub(r"NCCL (INFO|WARN)|Xid|error", "\x1b[01;31m\x1b[K\\g<0>\x1b[m\x1b[K", text)
    ),
    "coloured lines": by_line(lambda line: f"\x1b[32m{line.rstrip(chr(10))}\x1b[0m\n"),
    "with a BOM": rewritten(lambda text: "\ufeff" + text),
    "quoted": by_line(lambda line: f"> {line}"),
    "quoted with a BOM": rewritten(
        lambda text: "\ufeff" + "".join(f"> {line}" for line in text.splitlines(keepends=True))
    ),
    "behind a container's name": by_line(lambda line: f"trainer-1  | {line}"),
    "behind a pod's name": by_line(lambda line: f"[pod/train-0/main] {line}"),
    "CRLF": rewritten(lambda text: text.replace("\n", "\r\n")),
    "without a last line end": rewritten(lambda text: text.rstrip("\n")),
    "each file twice": twice,
    "an hour later": rewritten(lambda text: _TIME.sub(hour_later, text)),
    "cut at 90 %": rewritten(cut),
}


def answer(path: Path) -> Answer:
    try:
        verdict = diagnose([str(path)]).verdict
    except TopodiagError as error:
        return "refused", str(error)[:80].replace(str(path), ""), ""
    if verdict is None or not verdict.causes:
        return verdict.state.value if verdict is not None else "none", "", ""
    return verdict.state.value, verdict.causes[0].finding.id, verdict.causes[0].status.value


def is_right(name: str, before: Answer, after: Answer, known: Mapping[str, str]) -> bool:
    """Whether a verdict may follow: the same one. Of a cut text also one that is as sure or less: a state that is no
    worse, and healthy only where the whole is; a cause that the whole text has, or that there follows from the first,
    no more certain than `known` says of it there; or another cause, less certain than the first is there."""
    state, cause, status = after
    if name.startswith("cut") and state == "unknown":
        return True
    if not name.startswith("cut") or not {state, before[0]} <= set(WORST_FIRST):
        return before[:2] == after[:2]
    if WORST_FIRST.index(state) < WORST_FIRST.index(before[0]):
        return False
    most = CERTAIN.index(known[cause]) if cause in known else CERTAIN.index(before[2]) + 1
    return (state != "healthy" or before[0] == "healthy") and (not cause or CERTAIN.index(status) >= most)


WORST_FIRST = ("failed", "hung", "slow", "at_risk", "healthy")


def incidents(folders: Sequence[Path]) -> list[Path]:
    """Folders of one event each, below these."""
    return [each for folder in folders for each in sorted(folder.iterdir()) if each.is_dir()]


def misses(incident: Path, names: Sequence[str]) -> list[str]:
    """A line for each transform of an incident that changes its verdict."""
    made = []
    with tempfile.TemporaryDirectory() as top:
        plain = Path(top, "plain", "in")
        copied(incident, plain)
        before, known = answer(plain), all_causes(plain)
        for number, name in enumerate(names):
            place = Path(top, str(number), "in")
            copied(incident, place)
            after = answer(TRANSFORMS[name](place))
            if not is_right(name, before, after, known):
                made.append(f"{incident.name}: {name}: {' '.join(before)} became {' '.join(after)}")
    return made


def all_causes(path: Path) -> dict[str, str]:
    """How certain each cause is, and what follows from the first: no more certain as a cause than that one."""
    try:
        verdict = diagnose([str(path)]).verdict
    except TopodiagError:
        return {}
    found = verdict.causes if verdict is not None else ()
    made = {each.finding.id: cause.status.value for cause in found[:1] for each in cause.consequences}
    for cause in reversed(found):
        made[cause.finding.id] = cause.status.value
    return made


def copied(incident: Path, place: Path) -> None:
    """The evidence of an incident, without what is true of it."""
    inner = incident / "in" if (incident / "in").is_dir() else incident
    shutil.copytree(inner, place, ignore=shutil.ignore_patterns(*_LEFT_OUT))
    for each in place.rglob("*"):
        each.chmod(0o755 if each.is_dir() else 0o644)


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path, default=[FOLDER])
    parser.add_argument("--only", default="", help="names of transforms, by commas")
    given = parser.parse_args(argv)
    names = [name for name in TRANSFORMS if not given.only or name in given.only.split(",")]
    chosen = incidents(given.folders)
    wrong = 0
    for incident in chosen:
        for line in misses(incident, names):
            wrong += 1
            print(line, flush=True)
    total = len(chosen) * len(names)
    print(f"{total - wrong} of {total} right: {len(chosen)} incidents, {len(names)} transforms")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
