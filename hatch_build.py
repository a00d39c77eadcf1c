"""Packs the fixtures that a wheel ships, one file each: four machines, a job and its table, to try every command on.

A checkout has all fixtures as folders, and an editable install uses those.
"""

from __future__ import annotations

import gzip
import io
import json
import tarfile
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

SHIPPED = {
    "dgx-h100-healthy": "node",
    "dgx-h100-gpu3-12of18-nvlink": "node",
    "hgx-a100": "node",
    "l40s-pcie-acs-on": "node",
    "gdr-off": "job",
    "all-reduce-gdr-off": "table",
}
FOLDERS = {"node": "nodes", "job": "jobs", "table": "tables"}
OURS = {"about.txt", "expected.json"}
"""Files that say what a fixture is for; they are no evidence."""


class Hook(BuildHookInterface[Any]):
    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Put the packed fixtures into the wheel; not for an editable install, which finds the folders."""
        if version == "editable":
            return
        self.made = Path(mkdtemp(prefix="topodiag-fixtures-"))
        for name in pack(Path(self.root) / "fixtures", self.made):
            build_data["force_include"][str(self.made / name)] = f"topodiag/fixtures/{name}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        if version != "editable":
            rmtree(self.made)


def pack(fixtures: Path, to: Path) -> list[str]:
    """Write the archives, the table and `about.json` into a folder; the names of the files. The same input gives the
    same bytes."""
    index, names = {}, []
    for name, kind in SHIPPED.items():
        place = fixtures / FOLDERS[kind] / name
        file = f"{name}.txt" if kind == "table" else f"{name}.tar.gz"
        if kind == "table":
            (to / file).write_bytes((place / "out.txt").read_bytes())
        else:
            (to / file).write_bytes(archive(place))
        about = (place / "about.txt").read_text(encoding="utf-8").strip().split("\n", 1)[0]
        index[name] = {"kind": kind, "file": file, "about": about}
        names.append(file)
    (to / "about.json").write_text(json.dumps(index, indent=1) + "\n", encoding="utf-8")
    return [*names, "about.json"]


def archive(place: Path) -> bytes:
    """A folder as .tar.gz, without times and owners."""
    made = io.BytesIO()
    with gzip.GzipFile(fileobj=made, mode="wb", mtime=0) as packed, tarfile.open(fileobj=packed, mode="w") as tar:
        for path in sorted(each for each in place.rglob("*") if each.is_file()):
            name = path.relative_to(place).as_posix()
            if name not in OURS:
                member = tarfile.TarInfo(name)
                member.size = path.stat().st_size
                with path.open("rb") as stream:
                    tar.addfile(member, stream)
    return made.getvalue()
