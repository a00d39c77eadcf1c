"""The objects of hwloc's XML, as they nest: machine, packages, NUMA nodes, bridges, devices."""

from __future__ import annotations

from dataclasses import field

from topodiag.lazy import dataclass


@dataclass(slots=True)
class HwlocObject:
    """One object: its XML attributes, its `info` pairs, where it stands, and the object above it."""

    type: str
    attributes: tuple[tuple[str, str], ...]
    line: int
    above: HwlocObject | None = None
    infos: dict[str, str] = field(default_factory=dict)
    format: int = 2
    """The major version of the file, 1 where it says none."""

    def get(self, name: str) -> str:
        return next((value for key, value in self.attributes if key == name), "")

    def within(self, *types: str) -> HwlocObject | None:
        """The nearest object above of one of these types."""
        above = self.above
        while above is not None and above.type not in types:
            above = above.above
        return above
