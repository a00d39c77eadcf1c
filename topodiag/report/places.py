"""Where evidence stands, in a form that a reader can open: `file:line`, relative to what the user gave."""

from __future__ import annotations

import os

from topodiag.model.finding import Finding
from topodiag.model.provenance import Origin
from topodiag.model.result import Result
from topodiag.words.places import FileNames


class Places(FileNames):
    """The files of a result as all outputs but JSON name them."""

    def __init__(self, result: Result) -> None:
        super().__init__(result.given or result.files, result.files)
        self._files, self._nodes = result.files, {node.host for node in result.nodes}

    def spell(self, origin: Origin, finding: Finding | None = None) -> str:
        """`logs/rank0.log:5`; a file inside a capture has the node before it, where the finding names one."""
        source = self.below(origin.source) or origin.source
        if finding is not None and origin.source not in self._files and not os.path.isabs(origin.source):
            hosts = [host for host in finding.where.nodes if host in self._nodes]
            source = f"{hosts[0]}/{source}" if len(hosts) == 1 and len(self._nodes) > 1 else source
        return source if origin.line is None else f"{source}:{origin.line}"
