"""What each drawing shows, by rows of a table: the picture with what it is drawn of, and the texts and marks in it."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tests.draw import shown as drawing
from tests.draw.jobs import connections, ringed
from tests.tables import examples
from topodiag.draw.chain import draw_chain
from topodiag.draw.fleet import draw_classes, draw_parts, draw_strips
from topodiag.draw.history import draw_history
from topodiag.draw.matrix import draw_matrix
from topodiag.draw.matrix_fold import SORTS, matrix_of
from topodiag.draw.rings import draw_rings
from topodiag.draw.timeline import draw_timeline
from topodiag.draw.waits import draw_waits
from topodiag.draw.waterfall import bars_of, draw_waterfall
from topodiag.model.finding import Cost, Finding, Severity, Where
from topodiag.model.fleet import Cohort, Exclusion, FleetNode, FleetResult, How, Outlier
from topodiag.model.history import PartStates, Spell, Track
from topodiag.model.job import Communicator, FlightRecord, Job
from topodiag.model.result import Moment
from topodiag.model.verdict import Agreement, Cause, CauseStatus, Consequence, Price, Quantity, State, Verdict

# -- ranks by transport --


def matrix(
    hosts: int | Sequence[str], gpus: int = 8, *, received: bool = False, connected: bool = True, **odd: str
) -> Job:
    """A ring over hosts, `node000` and so on where they are a number, of which
    only receivers print a line, or nobody."""
    names = [f"node{number:03d}" for number in range(hosts)] if isinstance(hosts, int) else hosts
    job = ringed(names, gpus, **odd)
    if received:
        return replace(job, connections=connections([(0, gpus, "NET/IB", 0)], names, gpus, direction=2))
    return job if connected else replace(job, connections=connections([], names, gpus))


def folded(job: Job) -> dict[str, Any]:
    """How the matrix of a job is folded: its bands of hosts with the odd ones, and the transports of its cells."""
    made = matrix_of(job)
    sorts = {f"{row} {column}": SORTS[cell.sort] for (row, column), cell in made.cells.items()}
    return {"folded": made.folded, "bands": [[band.hosts, band.outlier] for band in made.rows], "cells": sorts}


def rings(
    hosts: int, gpus: int = 2, odd: str = "", *, turned: int = 0, closed: bool = True, twice: bool = False,
    of_all_channels: bool = False, unlogged: int = -1, printed: bool = True,
) -> Job:  # fmt: skip
    """A job whose ring begins `turned` ranks later, is open, or is that of two channels, which the connections are of
    too or not; one rank may have left no log, and no ring may be printed."""
    job = ringed([f"n{number:02d}" for number in range(hosts)], gpus, odd=odd, odd_via="NET/Socket")
    if of_all_channels:
        channels = np.full(len(job.connections), 3, np.uint64)
        job = replace(job, connections=replace(job.connections, channels=channels))
    order = np.roll(np.arange(job.world_size), -turned)
    ring = tuple(int(rank) for rank in order[: None if closed else -1])
    world = Communicator(0, job.world_size, np.arange(job.world_size), rings={0: ring} | ({1: ring} if twice else {}))
    job = replace(job, communicators=(world,) if printed else ())
    return replace(job, ranks=tuple(rank for rank in job.ranks if rank.rank != unlogged))


def waits(
    ranks: int, missing: int = -1, *, timed: bool = True, state: str = "started", group: int = 0, dumped: bool = True
) -> Job:
    """Dumps of ranks that wait in an all_reduce, but for one that never entered it; the group may have more ranks."""
    members = {"0": tuple(range(group or ranks))}
    records = []
    for rank in range(ranks):
        last = [] if rank == missing else [("0", 42, "all_reduce", state)]
        entries = (("0", 41, "all_reduce", "completed"), *last)
        times = tuple((100.0 + rank / 10 + at) if timed else float("nan") for at in range(len(entries)))
        records.append(FlightRecord(rank, entries, members, {"0": "tp"}, created_s=times))
    return replace(ringed(["n1"], ranks), flight=tuple(records) if dumped else ())


# -- events, and nodes over time --

T0 = 1772426840.0


def timeline(
    moments: list[list[Any]] | None = None, many: int = 0, every_s: float = 1.0, lanes: int = 1, what: str = "an event"
) -> list[Moment]:
    """Events as seconds ("never" for no time), what they are, their host and how far its clock can be off; or `many` of
    them, one `every_s`, on so many hosts."""

    def moment(after: float | str, what: str = "an event", host: str = "n1", within: float | None = None) -> Moment:
        return Moment(None if isinstance(after, str) else T0 + after, what, host, within_s=within)

    run = [moment(at * every_s, what.format(at), f"n{at % lanes}") for at in range(many)]
    return [*(moment(*told) for told in moments or ()), *run]


START, DAY = 1_772_352_000.0, 86_400.0
WEEKS = tuple((START + 7 * DAY * week, ("PCI001 GPU5",) if week in {2, 3} else ()) for week in range(6))


def spells(part: str, *states: tuple[str, float], every_s: float) -> PartStates:
    """A part in each state for so many seconds, one after the other `every_s`."""
    made = (Spell(state, "b", 0.0, length, START + every_s * at) for at, (state, length) in enumerate(states))
    return PartStates(part, tuple(made))


UP_AND_DOWN = (("ACTIVE", 6 * DAY), ("DOWN", 6 * DAY))
TRACKS = {
    "six weeks": Track("gpu07.site.example", WEEKS, (spells("mlx5_3/1", *UP_AND_DOWN * 3, every_s=7 * DAY),)),
    "two hours": Track(
        "gpu07", (), (spells("gpu3", ("answers", 3600.0), ("lost", 3600.0), every_s=3600.0),)
    ),
    "2000 spells": Track(
        "n", ((START, ()), (START + 90 * DAY, ())),
        (spells("mlx5_0", *(("ACTIVE", 10.0), ("DOWN", 10.0)) * 1000, every_s=20.0),),
    ),
    "one capture": Track("n", ((START, ()),)),
    "times that no calendar has": Track("n", ((1e300, ()), (-5.0, ()))),
}  # fmt: skip

# -- fleets --


def of_parts(nodes: int, findings: list[dict[str, Any]]) -> tuple[list[str], list[Finding]]:
    """Nodes `n00000` and so on, and findings on some of them: numbers, or a range of them; of adapters a number."""
    names = [f"n{number:05d}" for number in range(nodes)]

    def finding(
        check: str, of: list[int], gpus: Sequence[str] = (), nics: list[str] | int = 0, severity: str = "ERROR"
    ) -> Finding:
        adapters = nics if isinstance(nics, list) else [f"mlx5_{number}" for number in range(nics)]
        where = Where(tuple(names[of[0] : of[-1] + 1]), tuple(gpus), tuple(adapters))
        return Finding(check, Severity[severity], "m", "o", "e", (), where)

    return names, [finding(**told) for told in findings]


OUTLIERS = {
    "slow": Outlier("pci", "replay counter", ("gpu3",), "950", "2", ("n00009",), 199, 200, How.FAR, "per hour", 80.0),
    "old": Outlier("firmware", "VBIOS", ("gpu0",), "96.00", "96.00.5", ("n00011",), 199, 200),
    "locked": Outlier("limits", "locked memory", ("",), "65536", "unlimited", ("n00003",), 199, 200, unit="bytes"),
    "shared": Outlier("limits", "shared memory", ("",), "270456016896", "1081824067584", ("n00004",), 199, 200,
                      How.FAR, "bytes"),
}  # fmt: skip


def fleet(outliers: list[str] | None = None) -> FleetResult:
    """200 nodes with these outliers, of which one is to exclude; or no node at all."""
    if outliers is None:
        return FleetResult((), ())
    names = tuple(f"n{number:05d}" for number in range(200))
    cohort = Cohort("DGX H100", (), names, outliers=tuple(OUTLIERS[name] for name in outliers))
    exclusion = Exclusion(("n00007",), (("NVL001", "m"),), Severity.ERROR)
    return FleetResult(tuple(FleetNode(host, host) for host in names), (cohort,), exclusions=(exclusion,))


# -- causes --


def chain(below: Sequence[Any] = (), status: str = "ESTABLISHED", times: int = 1) -> Verdict:
    """A cause with what follows: its check, why, how deep, and its message; a table is so many of them."""

    def finding(check: str, message: str = "message") -> Finding:
        return Finding(check, Severity.ERROR, message, "o", "e", ())

    def following(told: Any) -> list[Consequence]:
        if isinstance(told, list):
            check, why, *depth = told
            return [Consequence(finding(check), why, *depth)]
        return [Consequence(finding(told["check"].format(at), told.get("message", "message").format(at)), "why")
                for at in range(told["count"])]  # fmt: skip

    cause = Cause(
        finding("NVL001", "GPU3 has 12 of 18 NVLinks active"), CauseStatus[status], price=Price(123.6, 1 / 3),
        consequences=tuple(each for told in below for each in following(told)),
    )  # fmt: skip
    return Verdict(causes=(cause,) * times)


WHAT = "busbw of all_reduce, 16 ranks on 2 nodes"


def waterfall(
    causes: Sequence[list[Any]] = (), state: str = "SLOW", agreement: str = "NOT_MEASURED", gbs_lost: float = 0.0
) -> Verdict:
    """Causes by check, share, what is used and what was measured, in GB/s of 400; or one of a node without a job, that
    loses so much of its narrowest place; or one without a price."""

    def cause(check: str, share: float, used: float, measured: float | None = None) -> Cause:
        quantity = Quantity(WHAT, measured, source="nccl-tests") if measured is not None else None
        price = Price(
            predicted=Quantity(WHAT, used), all_gone=Quantity(WHAT, 400.0), measured=quantity, job_share=share,
            gbs_lost=400.0 * share, share=share, agreement=Agreement[agreement],
        )  # fmt: skip
        finding = Finding(check, Severity.ERROR, f"message of {check}", "o", "e", ())
        return Cause(finding, CauseStatus.ESTABLISHED, price=price)

    def unpriced(check: str) -> Cause:
        cost = Cost(gbs_lost, 1 / 3) if gbs_lost else Cost()
        finding = Finding(check, Severity.ERROR, "m", "o", "e", (), Where(("n1",), ("GPU3",)), cost)
        return Cause(finding, CauseStatus.ESTABLISHED)

    return Verdict(State[state], causes=tuple(cause(*told) if told[1:] else unpriced(*told) for told in causes))


def steps(verdict: Verdict) -> list[list[Any]]:
    return [[bar.name.split()[0], round(bar.end)] for bar in bars_of(verdict)[2] if bar.kind != "missing"]


PICTURES: dict[str, tuple[Callable[..., Any], Callable[[Any], str]]] = {
    "matrix": (matrix, draw_matrix),
    "rings": (rings, draw_rings),
    "waits": (waits, draw_waits),
    "timeline": (timeline, draw_timeline),
    "history": (lambda tracks: [TRACKS[name] for name in tracks], draw_history),
    "parts": (of_parts, lambda told: draw_parts(*told)),
    "classes": (fleet, draw_classes),
    "strips": (fleet, draw_strips),
    "chain": (chain, draw_chain),
    "waterfall": (waterfall, draw_waterfall),
}


def shown(drawn_of: Any, svg: str, column: str, wanted: Any) -> Any:
    """What a drawing has where a row says what it should."""
    labels = drawing.texts(svg) if svg else []
    match column:
        case "texts":
            return [text for text in wanted if text in labels]
        case "words":
            return [part for part in wanted if any(part in text for text in labels)]
        case "unsaid":
            return [part for part in wanted if not any(part in text for text in labels)]
        case "order":
            return sorted(wanted, key=labels.index)
        case "counts":
            return {text: labels.count(text) for text in wanted}
        case "marks":
            return {mark: svg.count(mark) for mark in wanted}
        case "longest":
            return max(wanted, *map(len, labels))
        case "svg":
            return [part for part in wanted if part in svg]
        case "most":
            return max(wanted, len(svg))
        case "none":
            return svg == ""
        case "matrix":
            made = folded(drawn_of)
            return {name: made[name] for name in wanted}
    return steps(drawn_of)


@examples("picture", "of", "has")
def test_a_drawing_shows_what_its_row_says(picture: str, of: dict[str, Any], has: dict[str, Any]) -> None:
    """Its `texts`, `words` in one of them or `unsaid`, texts in this `order`, their `counts`, and how long they are at
    most; what is in the `svg`, how often `marks` are, and how long it is at `most`; whether there is `none`; how a
    `matrix` is folded, and the `steps` of a waterfall."""
    build, draw = PICTURES[picture]
    drawn_of = build(**of)
    svg = draw(drawn_of)
    assert {column: shown(drawn_of, svg, column, wanted) for column, wanted in has.items()} == has, svg
