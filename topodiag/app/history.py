"""The use case of `topodiag fleet history`: add captures and watches to a store, and ask it."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace

from topodiag.app.case.opening import gathered
from topodiag.app.redact.redacting import hidden
from topodiag.checks.registry import Subject
from topodiag.checks.run import fold, run
from topodiag.evidence.intake.captures import captures
from topodiag.evidence.intake.pieces import Intake, read_piece, refusal
from topodiag.evidence.kinds import NODE_KINDS, Kind
from topodiag.evidence.live.watch_log import read_watch
from topodiag.fleet.collect.targets import nodes_of
from topodiag.fleet.history.adding import Addition
from topodiag.fleet.history.capture import read_captures
from topodiag.fleet.history.questions import Row, failing, histories, rising, rows_by_host, tracks, worst_hosts
from topodiag.fleet.history.store import Store, is_store, open_store, writing_to
from topodiag.model.errors import InputError
from topodiag.model.finding import Input
from topodiag.model.history import FleetHistory
from topodiag.writing import scratch_folder

MAX_WATCH = 64 << 20
"""Bytes of one file of a watch."""
ASIDE_TOLD = 20


def history(place: str, paths: Sequence[str], nodelist: Sequence[str] = ()) -> FleetHistory:
    """The answers of the store at `place`, after what is at `paths` was added to it. A `place` that is no store but
    evidence (bundles, files of a watch) is asked by itself, and nothing is kept. `nodelist` are node sets: the nodes
    asked about, () for all. Raises InputError."""
    hosts = frozenset(nodes_of(nodelist) if nodelist else ())
    if is_store(place) and not paths:
        return _asked(open_store(place), hosts)
    if paths:
        with writing_to(place) as store:
            return _added(store, paths, hosts)
    with scratch_folder() as folder, writing_to(os.path.join(folder, "store")) as store:
        return _added(store, (place,), hosts)


def _added(store: Store, paths: Sequence[str], hosts: frozenset[str]) -> FleetHistory:
    intake = gathered(paths)
    addition = Addition(store)
    aside = _take(intake, addition)
    if not addition.added and not addition.known_before:
        raise refusal(intake, {*NODE_KINDS, Kind.WATCH}, "capture of a node, and no file of a watch", ())
    answers = _asked(addition.commit(), hosts)
    return replace(answers, added=addition.added, known_before=addition.known_before, aside=tuple(aside[:ASIDE_TOLD]))


def _take(intake: Intake, addition: Addition) -> list[str]:
    """Add each capture and each watch; what could not be read, in words. A few are in memory at a time."""
    captured = captures(intake)
    watches = intake.of(Kind.WATCH)
    aside = [str(left_out) for left_out in captured.aside if left_out.path not in {piece.name for piece in watches}]
    for read in read_captures(captured.captures, intake):
        if isinstance(read, str):
            aside.append(read)
        else:
            addition.capture(hidden(read))
    for piece in watches:
        try:
            data = read_piece(intake, piece, MAX_WATCH).data
        except InputError as error:
            aside.append(str(error))
            continue
        if (log := read_watch(data)) is not None:
            addition.watch(hidden(log), hashlib.sha256(data).hexdigest())
    return aside


def _asked(store: Store, wanted: frozenset[str]) -> FleetHistory:
    def is_asked(host: str) -> bool:
        return not wanted or host in wanted

    rows = rows_by_host(store, is_asked)
    node_histories = histories(store, rows, is_asked)
    if not node_histories:
        hint = "leave --nodelist out to see them all" if wanted else "add bundles: topodiag fleet history DIR BUNDLES"
        raise InputError(store.folder, "has no capture of these nodes" if wanted else "is empty", hint=hint)
    outcomes = run(Subject.HISTORY, node_histories)
    times = [row.capture.time_s for of_host in rows.values() for row in of_host if row.capture.time_s is not None]
    few, common = rising(node_histories)
    findings, failed = fold(outcomes), failing(rows)
    return FleetHistory(
        hosts=len(node_histories),
        captures=sum(map(len, rows.values())),
        first_s=min(times, default=None),
        last_s=max(times, default=None),
        watched=sum(node_history.end_s is not None for node_history in node_histories),
        compared=sum(node_history.before is not None for node_history in node_histories),
        findings=findings,
        outcomes=outcomes,
        failing=failed,
        rising=few,
        common=common,
        inputs=_inputs(store, rows),
        tracks=tracks([*(failure.host for failure in failed), *worst_hosts(findings)], rows, node_histories),
    )


def _inputs(store: Store, rows: Mapping[str, Sequence[Row]]) -> tuple[Input, ...]:
    """What the store was made of: each capture by the checksum of what it holds, each file of a watch by its own."""
    held = [row.capture for of_host in rows.values() for row in of_host]
    captured = [Input(capture.source or f"{capture.host} {capture.day}", "capture", capture.id) for capture in held]
    return (*captured, *(Input("file of a watch", Kind.WATCH.value, digest) for digest in store.manifest.watched))
