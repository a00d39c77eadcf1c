"""This machine as a node: a capture that stays in memory, and can be saved as a bundle."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from topodiag.evidence.intake.bundle import from_memory
from topodiag.evidence.intake.reader import ReadNode, read_node
from topodiag.lazy import dataclass
from topodiag.writing import check_new_folder, check_writable, new_folder, replacing

if TYPE_CHECKING:
    from topodiag_probes.bundle import Bundle

Progress = Callable[[str, str, float], None]
"""Called from several threads with `start` or `done`, a probe's name, and its seconds."""
ARCHIVE = (".tar.gz", ".tgz")
"""Names by which a bundle is saved as one file; any other is a folder."""


@dataclass(frozen=True, slots=True)
class Options:
    """How to look at a live node. Times in seconds; `save` is where the bundle goes (`.tar.gz`, else a folder)."""

    deadline_s: float = 20.0
    sample_s: float = 0.0
    save: str | None = None
    redact: bool = False


def captured(options: Options | None = None, on_progress: Progress | None = None) -> ReadNode:
    """This machine, read as a bundle is. Raises InputError where it cannot be saved as the options ask."""
    from topodiag_probes.capture import capture  # noqa: PLC0415 - a captured bundle needs no collector
    from topodiag_probes.redact import Redactor, read_key  # noqa: PLC0415

    chosen = options or Options()
    as_file = chosen.save is not None and chosen.save.endswith(ARCHIVE)
    if chosen.save is not None:
        (check_writable if as_file else check_new_folder)(chosen.save)
    redactor = Redactor(read_key(None, os.environ)) if chosen.redact else None
    deadline_s, sample_s = chosen.deadline_s, chosen.sample_s
    bundle = capture(deadline_s=deadline_s, sample_s=sample_s, redactor=redactor, on_progress=on_progress)
    if chosen.save is not None:
        _save(bundle, chosen.save, as_file=as_file)
    return read_node(from_memory("live", bundle.manifest, bundle.files))


def _save(bundle: Bundle, path: str, *, as_file: bool) -> None:
    from topodiag_probes.bundle import write_folder, write_tar  # noqa: PLC0415

    if as_file:
        with replacing(path, private=True) as file:
            write_tar(bundle, file)
        return
    with new_folder(path) as folder:
        write_folder(bundle, folder)
