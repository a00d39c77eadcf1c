"""Packs the fixtures that a wheel ships, one file each: an incident, four machines, a job and its table.

`hatch_build.py` runs it when a wheel is built, where nothing is installed: standard library only.
"""

from __future__ import annotations

import gzip
import io
import json
import tarfile
from collections.abc import Iterator
from pathlib import Path

SHIPPED = {
    "a-gpu-link-stuck-at-gen2": "incident",
    "dgx-h100-healthy": "node",
    "dgx-h100-gpu3-12of18-nvlink": "node",
    "hgx-a100": "node",
    "l40s-pcie-acs-on": "node",
    "gdr-off": "job",
    "all-reduce-gdr-off": "table",
}
FOLDERS = {"incident": "incidents", "node": "nodes", "job": "jobs", "table": "tables"}
OURS = {"about.txt", "expected.json", "question.txt", "truth.json"}
"""Files that say what a fixture is for; they are no evidence."""


def pack(fixtures: Path, to: Path) -> list[str]:
    """Write the archives, the table, the incident's folder and `about.json` into a folder; the names of the files. The
    same input gives the same bytes."""
    index, names = {}, []
    for name, kind in SHIPPED.items():
        place = fixtures / FOLDERS[kind] / name
        packed = dict(PACKED[kind](name, place))
        for file, data in packed.items():
            (to / file).parent.mkdir(parents=True, exist_ok=True)
            (to / file).write_bytes(data)
        whole = name if kind == "incident" else next(iter(packed))
        index[name] = {"kind": kind, "file": whole, "about": about_of(place)}
        names += packed
    (to / "about.json").write_text(json.dumps(index, indent=1) + "\n", encoding="utf-8")
    return [*names, "about.json"]


def incident(name: str, place: Path) -> Iterator[tuple[str, bytes]]:
    """The files of an incident as they are, below a folder of its name: the bundles among them are archives."""
    for path in sorted(each for each in place.rglob("*") if each.is_file() and each.name not in OURS):
        yield f"{name}/{path.relative_to(place).as_posix()}", path.read_bytes()


def about_of(place: Path) -> str:
    """One sentence: the first line of `about.txt`, or the summary of an incident's truth."""
    if (truth := place / "truth.json").is_file():
        return str(json.loads(truth.read_text(encoding="utf-8"))["summary"])
    return (place / "about.txt").read_text(encoding="utf-8").strip().split("\n", 1)[0]


def machine(name: str, place: Path) -> Iterator[tuple[str, bytes]]:
    """A captured machine as a bundle: .tar.gz without times and owners."""
    made = io.BytesIO()
    with gzip.GzipFile(fileobj=made, mode="wb", mtime=0) as packed, tarfile.open(fileobj=packed, mode="w") as tar:
        for path in sorted(each for each in place.rglob("*") if each.is_file()):
            member = tarfile.TarInfo(path.relative_to(place).as_posix())
            if member.name not in OURS:
                member.size = path.stat().st_size
                with path.open("rb") as stream:
                    tar.addfile(member, stream)
    yield f"{name}.tar.gz", made.getvalue()


def job(name: str, place: Path) -> Iterator[tuple[str, bytes]]:
    """The logs of all processes in one file, as a launcher writes them."""
    text = b"".join(path.read_bytes() for path in sorted((place / "logs").iterdir()))
    yield f"{name}.log.gz", gzip.compress(text, mtime=0)


def table(name: str, place: Path) -> Iterator[tuple[str, bytes]]:
    """The output of nccl-tests as it is."""
    yield f"{name}.txt", (place / "out.txt").read_bytes()


PACKED = {"incident": incident, "node": machine, "job": job, "table": table}
