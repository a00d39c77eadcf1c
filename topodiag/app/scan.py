"""The use case of `topodiag scan`: from paths, or the live node, to nodes, and what is wrong with them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from topodiag.app.collecting import few_collections
from topodiag.app.opening import stream_for, with_given
from topodiag.checks.registry import Subject
from topodiag.checks.run import fold, run
from topodiag.checks.spoken import told
from topodiag.checks.troubles.node import troubles
from topodiag.evidence.intake.bundle import from_memory
from topodiag.evidence.intake.captures import Capture, captures, evidence_of
from topodiag.evidence.intake.gather import gather
from topodiag.evidence.intake.pieces import Aside, Intake, folded, refusal
from topodiag.evidence.intake.reader import ReadNode, read_node
from topodiag.evidence.intake.watched import watch
from topodiag.evidence.kinds import NODE_KINDS
from topodiag.lazy import dataclass, regex
from topodiag.model.case import Case
from topodiag.model.errors import InputError
from topodiag.model.finding import Input
from topodiag.model.provenance import PART, NotObserved
from topodiag.model.result import Result
from topodiag.verdict.order import arranged
from topodiag.writing import check_new_folder, check_writable, new_folder, replacing

if TYPE_CHECKING:
    from topodiag_probes.bundle import Bundle

Progress = Callable[[str, str, float], None]
"""Called from several threads with `start` or `done`, a probe's name, and its seconds."""

ARCHIVE = (".tar.gz", ".tgz")
"""Names by which a bundle is saved as one file; any other is a folder."""
_BUNDLED = regex(r"(?:json|trees|commands|files|text)/[^/]{1,200}\Z")
"""A file of a bundle by its name inside."""


@dataclass(frozen=True, slots=True)
class Options:
    """How to look at a live node. Times in seconds; `save` is where the bundle goes (`.tar.gz`, else a folder)."""

    deadline_s: float = 20.0
    sample_s: float = 0.0
    save: str | None = None
    redact: bool = False


@few_collections()
def scan(paths: Sequence[str], *, options: Options | None = None, since: str | None = None) -> Result:
    """Judge captured nodes: any mix of bundles, folders of them, archives, files of tool output, topology files,
    `fixture:NAME` and `-`. What belongs to no node is left aside with the command that reads it. `since` is an earlier
    capture of one of the nodes: what changed is judged, too. Raises InputError."""
    if options is not None and options.save is not None:
        raise InputError(options.save, "only a live scan can be saved", hint="leave the paths or --save out")
    earlier = one_node(since) if since is not None else None
    intake = gather(paths, stdin=stream_for(paths))
    watch().planned(intake.of(*NODE_KINDS))
    case = node_case(intake)
    watch().judged()
    return with_given(judged(case, earlier, since or ""), paths)


def live(*, options: Options | None = None, on_progress: Progress | None = None, since: str | None = None) -> Result:
    """Diagnose this machine: the same code as for a bundle, on a capture that stays in memory. `since` is an earlier
    capture of it. Raises InputError."""
    from topodiag_probes.capture import capture  # noqa: PLC0415 - a captured bundle needs no collector
    from topodiag_probes.redact import Redactor, read_key  # noqa: PLC0415

    chosen = options or Options()
    if chosen.save is not None:
        _check_save(chosen.save)
    earlier = one_node(since) if since is not None else None
    bundle = capture(
        deadline_s=chosen.deadline_s,
        sample_s=chosen.sample_s,
        redactor=Redactor(read_key(None, os.environ)) if chosen.redact else None,
        on_progress=on_progress,
    )
    if chosen.save is not None:
        _save(bundle, chosen.save)
    evidence = from_memory("live", bundle.manifest, bundle.files)
    return judged(case_of([read_node(evidence)]), earlier, since or "")


def node_case(intake: Intake) -> Case:
    """The nodes in what was gathered, one for each capture. A capture that cannot be read is left aside where there are
    others. Raises InputError where there is none."""
    found = captures(intake)
    aside = list(found.aside)
    read: list[ReadNode] = []
    broken: list[InputError] = []
    for capture in found.captures:
        try:
            read.append(read_node(evidence_of(capture, intake)))
        except InputError as error:
            broken.append(error)
            why = error.message.removeprefix(f"{capture.name}: ")
            aside.append(Aside(capture.name, why, hint=error.hint, unreadable=True))
    if not read:
        raise broken[0] if broken else refusal(intake, NODE_KINDS, "evidence of a node", found.aside)
    made = case_of(read)
    gaps = [*(NotObserved(PART, note) for note in found.notes), *left_out(aside)]
    return replace(made, not_observed=tuple(dict.fromkeys((*gaps, *made.not_observed))))


def left_out(aside: Iterable[Aside]) -> list[NotObserved]:
    """What of the input was not read, in a line for each reason."""
    by_kind = {broken: [each for each in aside if each.unreadable is broken] for broken in (False, True)}
    return [NotObserved(PART, note, unreadable=broken) for broken, own in by_kind.items() for note in folded(own)]


def one_node(path: str) -> ReadNode:
    """The only node at a path. Raises InputError where there is none, or more than one."""
    intake = gather([path], stdin=stream_for([path]))
    found = captures(intake)
    if not found.captures:
        raise refusal(intake, NODE_KINDS, "evidence of a node", found.aside)
    if len(found.captures) > 1:
        names = ", ".join(_label(each) for each in found.captures[:4]) + (", ..." if len(found.captures) > 4 else "")
        first = found.captures[0].name
        raise InputError(path, f"holds {len(found.captures)} nodes: {names}", hint=f"give one of them, as {first}")
    return read_node(evidence_of(found.captures[0], intake))


def _label(capture: Capture) -> str:
    return capture.label or capture.host or capture.name


def case_of(read: Sequence[ReadNode]) -> Case:
    """Nodes that were read, as a case."""
    nodes = tuple(each.node for each in read)
    several = len(nodes) > 1
    return Case(
        nodes=nodes,
        inputs=tuple(_of_node(item, each.node.host) if several else item for each in read for item in each.inputs),
        not_observed=tuple(dict.fromkeys(item for node in nodes for item in node.not_observed)),
        unread=tuple(line for each in read for line in each.unread),
    )


def _of_node(item: Input, host: str) -> Input:
    """An input of one of several nodes: a file of a bundle has the node before it, as every bundle has such a file."""
    return replace(item, path=f"{host}/{item.path}") if host and _BUNDLED.match(item.path) else item


def judged(case: Case, earlier: ReadNode | None = None, path: str = "") -> Result:
    """The nodes of a case, judged; against an `earlier` capture of one of them, read from `path`, where there is one.
    Raises InputError where that is of another node."""
    outcomes = run(Subject.NODE, case.nodes)
    if earlier is not None:
        from topodiag.app.fleet.since import judged_since  # noqa: PLC0415 - facts of a node, which few scans need

        outcomes += judged_since(case.nodes, earlier, path)
    made = Result(
        inputs=case.inputs,
        nodes=case.nodes,
        outcomes=outcomes,
        findings=arranged(fold(outcomes), case),
        not_observed=case.not_observed,
        unread=case.unread,
        unexplained=troubles(case.nodes, outcomes),
    )
    return told(made)


def _check_save(path: str) -> None:
    if path.endswith(ARCHIVE):
        check_writable(path)
    else:
        check_new_folder(path)


def _save(bundle: Bundle, path: str) -> None:
    from topodiag_probes.bundle import write_folder, write_tar  # noqa: PLC0415

    if path.endswith(ARCHIVE):
        with replacing(path, private=True) as file:
            write_tar(bundle, file)
        return
    with new_folder(path) as folder:
        write_folder(bundle, folder)
