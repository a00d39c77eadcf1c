"""The wiring: from paths, or the live node, to a Result. The only place that knows all stages.

>>> import topodiag
>>> result = topodiag.diagnose(["fixture:dgx-h100-gpu3-12of18-nvlink"])
>>> [finding.id for finding in result.findings]
['NVL001']
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from topodiag.checks.run import fold, run_checks
from topodiag.evidence.bundle import MANIFEST, from_memory, open_evidence
from topodiag.evidence.reader import ReadNode, read_node
from topodiag.model.errors import InputError
from topodiag.model.result import Result
from topodiag.writing import check_new_folder, check_writable, replacing

if TYPE_CHECKING:
    from topodiag_probes.bundle import Bundle

Progress = Callable[[str, str, float], None]
"""Called from several threads with `start` or `done`, a probe's name, and its seconds."""

FIXTURE_PREFIX = "fixture:"
ARCHIVE = (".tar.gz", ".tgz")
"""Names by which a bundle is saved as one file; any other is a folder."""


@dataclass(frozen=True, slots=True)
class Options:
    """How to look at a live node. Times in seconds; `save` is where the bundle goes (`.tar.gz`, else a folder)."""

    deadline_s: float = 20.0
    sample_s: float = 0.0
    save: str | None = None
    redact: bool = False


def diagnose(paths: Sequence[str], *, options: Options | None = None) -> Result:
    """Diagnose captured evidence: bundles, folders, files, `fixture:NAME`, `-`. Raises InputError."""
    if options is not None and options.save is not None:
        raise InputError(options.save, "only a live scan can be saved", hint="leave --from or --save out")
    made = []
    for path in paths:
        evidence = open_evidence(_resolve(path), _stdin() if path == "-" else None)
        made.append(read_node(evidence))
    return _judge(made)


def live(*, options: Options | None = None, on_progress: Progress | None = None) -> Result:
    """Diagnose this machine: the same code as for a bundle, on a capture that stays in memory. Raises InputError."""
    from topodiag_probes.capture import capture  # noqa: PLC0415 - a captured bundle needs no collector
    from topodiag_probes.redact import Redactor  # noqa: PLC0415

    chosen = options or Options()
    if chosen.save is not None:
        _check_save(chosen.save)
    bundle = capture(
        deadline_s=chosen.deadline_s,
        sample_s=chosen.sample_s,
        redactor=Redactor() if chosen.redact else None,
        on_progress=on_progress,
    )
    if chosen.save is not None:
        _save(bundle, chosen.save)
    evidence = from_memory("live", bundle.manifest, bundle.files)
    return _judge([read_node(evidence)])


def fixtures() -> tuple[str, ...]:
    """Names of the captured machines that ship with the program, for `fixture:NAME`."""
    return tuple(sorted(place.name for place in _fixture_root().glob("*") if (place / MANIFEST).is_file()))


def fixture_path(name: str) -> Path:
    """Where a shipped fixture lies."""
    if name not in fixtures():
        near = ", ".join(fixtures()) or "none is installed"
        raise InputError(FIXTURE_PREFIX + name, "no such fixture", hint=f"there are: {near}")
    return _fixture_root() / name


def _stdin() -> BinaryIO:
    if sys.stdin is None:
        raise InputError("<stdin>", "is closed", hint="give it a file: topodiag scan --from - < FILE")
    return sys.stdin.buffer


def _fixture_root() -> Path:
    """Inside an installed wheel, or beside the package in a checkout."""
    package = Path(__file__).parent
    shipped = package / "fixtures" / "nodes"
    return shipped if shipped.is_dir() else package.parent / "fixtures" / "nodes"


def _resolve(path: str) -> str:
    return str(fixture_path(path.removeprefix(FIXTURE_PREFIX))) if path.startswith(FIXTURE_PREFIX) else path


def _check_save(path: str) -> None:
    if path.endswith(ARCHIVE):
        check_writable(path)
    else:
        check_new_folder(path)


def _save(bundle: Bundle, path: str) -> None:
    from topodiag_probes.bundle import write_folder, write_tar  # noqa: PLC0415

    if path.endswith(ARCHIVE):
        with replacing(path) as file:
            write_tar(bundle, file)
        return
    try:
        write_folder(bundle, path)
    except OSError as error:
        raise InputError(path, f"cannot be written: {error.strerror or error}", hint="it is not whole") from None


def _judge(read: Sequence[ReadNode]) -> Result:
    nodes = tuple(each.node for each in read)
    outcomes = run_checks(nodes)
    return Result(
        inputs=tuple(item for each in read for item in each.inputs),
        nodes=nodes,
        outcomes=outcomes,
        findings=fold(outcomes),
        not_observed=tuple(dict.fromkeys(item for node in nodes for item in node.not_observed)),
        unread=tuple(line for each in read for line in each.unread),
    )


__all__ = ["Options", "diagnose", "fixture_path", "fixtures", "live"]
