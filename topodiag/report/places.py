"""Where evidence stands, in a form that a reader can open: `file:line`, relative to what all inputs share."""

from __future__ import annotations

import os
from collections.abc import Iterable
from os.path import commonpath, dirname, relpath

from topodiag.model.finding import Finding
from topodiag.model.provenance import Origin
from topodiag.model.result import Result


class Places:
    """Names of sources as short as they are clear."""

    def __init__(self, result: Result) -> None:
        paths = [path for job in result.jobs for path in job.files]
        paths += [benchmark.run.source for benchmark in result.benchmarks if benchmark.run.source]
        told = [line.source for finding in result.findings for line in finding.evidence]
        self._files = set(paths) | {item.path for item in result.inputs}
        self._root = _shared([*paths, *(source for source in told if os.path.isabs(source))])
        self._nodes = {node.host for node in result.nodes}

    def spell(self, origin: Origin, finding: Finding | None = None) -> str:
        """`logs/rank0.log:5`; a file inside a capture has the node before it, where the finding names one."""
        source = origin.source
        if self._root and source.startswith(self._root + os.sep):
            source = relpath(source, self._root)
        elif finding is not None and origin.source not in self._files and not os.path.isabs(source):
            hosts = [host for host in finding.where.nodes if host in self._nodes]
            source = f"{hosts[0]}/{source}" if len(hosts) == 1 and len(self._nodes) > 1 else source
        return source if origin.line is None else f"{source}:{origin.line}"


def _shared(paths: Iterable[str]) -> str:
    known = list(paths)
    absolute = [path for path in known if os.path.isabs(path)]
    folders = sorted({dirname(path) for path in absolute or known})
    try:
        return commonpath(folders) if folders else ""
    except ValueError:  # drives that differ
        return ""
