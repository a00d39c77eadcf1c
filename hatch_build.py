"""Puts the fixtures that a wheel ships into it, packed. An editable install finds the folders of the checkout."""

from __future__ import annotations

from pathlib import Path
from runpy import run_path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class Hook(BuildHookInterface[Any]):
    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Put the packed fixtures into the wheel; not for an editable install, which finds the folders."""
        if version == "editable":
            return
        self.made = Path(mkdtemp(prefix="topodiag-fixtures-"))
        pack = run_path(str(Path(self.root) / "tools" / "pack_fixtures.py"))["pack"]
        for name in pack(Path(self.root) / "fixtures", self.made):
            build_data["force_include"][str(self.made / name)] = f"topodiag/fixtures/{name}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        if version != "editable":
            rmtree(self.made)
