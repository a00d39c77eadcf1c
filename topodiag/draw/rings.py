"""Rings: hosts in their order with the ranks inside, and what each hop goes over. Hosts alike in a row are folded.

A hop that goes over something else than most is thick and dashed, a host with such a hop inside is hatched.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import groupby

from topodiag.draw.svg import Canvas, undrawn
from topodiag.lazy import dataclass
from topodiag.model.job import Communicator, Job
from topodiag.model.job_rings import UNSAID, Ring, hosts_along, rings_of
from topodiag.words.hosts import short_names
from topodiag.words.units import few, fold_runs, numbered, plural

BOX, HIGH, HOP, TOP, LINE = 156, 54, 104, 60, 84
"""A host's box, the room of the arrow behind it, what stands above, and from line to line, px."""
ACROSS, MOST_BOXES = 2, 12
"""Boxes on a line, and in a ring: of more hosts those alike are folded."""
MOST_RINGS, MOST_COMMS = 6, 3
WIDE = ACROSS * (BOX + HOP)


@dataclass(frozen=True, slots=True)
class _Stop:
    """Neighbouring hosts of a ring, one or several that are alike: the ranks of the first, what their own hops and the
    hop behind the last go over."""

    host: str
    ranks: tuple[int, ...]
    inside: tuple[str, ...]
    out: str
    odd_inside: bool
    odd_out: bool
    hosts: int = 1


def draw_rings(job: Job, *, prefix: str = "") -> str:
    """The rings of the first communicators that have any, "" where no ring is in the logs, or where
    ranks left no log."""
    known = {rank.rank: rank.host for rank in job.ranks if rank.host}
    # Of a rank that left no log nobody knows the host: such a ring would show hops between hosts that are none.
    comms = [comm for comm in job.communicators if comm.rings and all(int(rank) in known for rank in comm.ranks)]
    if not comms:
        return ""
    hosts = sorted(set(known.values()))
    names = dict(zip(hosts, short_names(hosts), strict=True))
    desc = f"{plural(len(comms), 'communicator')} with rings"
    canvas = Canvas(f"Rings, {job.name}".rstrip(", "), desc, prefix)
    canvas.heading("ranks of the world; thick, dashed or hatched: over something else than most")
    y = float(TOP)
    for comm in comms[:MOST_COMMS]:
        y = _comm(canvas, job, comm, {rank: names.get(host, "?") for rank, host in known.items()}, y)
    left = len(comms) - MOST_COMMS
    if left > 0:
        canvas.text(0, y + 6, f"{plural(left, 'more communicator')} with rings not drawn", "small")
        y += 18
    return canvas.document(WIDE, y)


def _comm(canvas: Canvas, job: Job, comm: Communicator, hosts: dict[int, str], y: float) -> float:
    rings = rings_of(job, comm)
    canvas.text(0, y + 12, f"{comm.label}: {plural(comm.nranks, 'rank')}", "name", room=WIDE)
    y += 26
    for ring in rings[:MOST_RINGS]:
        canvas.text(0, y + 12, numbered("channel", ring.channels), "quiet", room=WIDE)
        y = _ring(canvas, _stops(comm, ring, hosts), ring.closed, y + 30)
    if words := undrawn("", len(rings) - MOST_RINGS, "ring"):
        canvas.text(0, y + 4, words, "small")
        y += 22
    return y


def _stops(comm: Communicator, ring: Ring, hosts: dict[int, str]) -> list[_Stop]:
    """The hosts of a ring in their order."""
    ring = _turned(comm, ring, hosts)
    world, homes, runs = hosts_along(comm, ring.ring, hosts)
    inner = [tuple(ring.vias[at] for at in run[:-1] if at < len(ring.vias)) for run in runs]
    outs = [ring.vias[run[-1]] if run[-1] < len(ring.vias) else "" for run in runs]
    usual_in = _usual([_bare(via) for vias in inner for via in vias])
    usual_out = _usual([_bare(via) for via in outs if via])
    stops = [
        _Stop(homes[run[0]], tuple(world[at] for at in run), tuple(dict.fromkeys(vias)), out,
              any(_differs(via, usual_in) for via in vias), _differs(out, usual_out))
        for run, vias, out in zip(runs, inner, outs, strict=True)
    ]  # fmt: skip
    return stops if len(stops) <= MOST_BOXES else _folded(stops)


def _turned(comm: Communicator, ring: Ring, hosts: dict[int, str]) -> Ring:
    """The same ring from the first rank of a host on, so that no host is at both ends."""
    _, homes, _ = hosts_along(comm, ring.ring, hosts)
    if not ring.closed or len(set(homes)) < 2 or homes[0] != homes[-1]:
        return ring
    start = max(at for at, home in enumerate(homes) if home != homes[-1]) + 1
    return Ring(ring.ring[start:] + ring.ring[:start], ring.vias[start:] + ring.vias[:start], ring.channels)


def _bare(via: str) -> str:
    """Without the numbers of NIC and rank, which rightly differ: `NET/IB/3 GDR PXN 8` is `NET/IB GDR PXN`."""
    words = ["/".join(part for part in word.split("/") if not part.isdigit()) for word in via.split(" ")]
    return " ".join(word for word in words if word)


def _spelt(ranks: Sequence[int]) -> str:
    """Ranks in the order of the ring, neighbours that count up as one: `1-7 0`."""
    return fold_runs([str(rank) if rank >= 0 else "?" for rank in ranks]).replace(", ", " ")


def _differs(via: str, usual: str) -> bool:
    """Whether a hop is known to go over something else than what is usual."""
    return bool(via and usual) and _bare(via) not in (usual, UNSAID)


def _usual(vias: Sequence[str]) -> str:
    """What more than half of three hops and more go over, "" where there is no such thing."""
    usual = Counter(via for via in vias if via != UNSAID)
    if sum(usual.values()) < 3:
        return ""
    via, count = usual.most_common(1)[0]
    return via if count * 2 > sum(usual.values()) else ""


def _folded(stops: Sequence[_Stop]) -> list[_Stop]:
    """The first and the last host, those that are odd, and between them the others in folds."""
    folded = [stops[0]]
    for outlier, run in groupby(stops[1:-1], key=lambda stop: stop.odd_inside or stop.odd_out):
        first, *others = alike = list(run)
        if outlier or not others:
            folded += alike
        else:
            last = others[-1]
            host = f"{first.host} to {last.host}"
            folded.append(_Stop(host, first.ranks, first.inside, last.out, False, False, len(alike)))
    folded.append(stops[-1])
    if len(folded) <= MOST_BOXES:
        return folded
    rest = folded[MOST_BOXES - 2 : -1]
    hosts = sum(stop.hosts for stop in rest)
    fold = _Stop(f"{rest[0].host} to {rest[-1].host}", (), (), rest[-1].out, True, rest[-1].odd_out, hosts)
    return [*folded[: MOST_BOXES - 2], fold, folded[-1]]


def _ring(canvas: Canvas, stops: Sequence[_Stop], closed: bool, y: float) -> float:
    for number, stop in enumerate(stops):
        x, top = number % ACROSS * (BOX + HOP), y + number // ACROSS * LINE
        kind, hatch = ("warn", "warnhatch") if stop.odd_inside else ("plain", "")
        canvas.rect(x, top, BOX, HIGH, kind, few(stop.inside), radius=5, hatch=hatch)
        title = f"{stop.hosts} hosts" if stop.hosts > 1 else stop.host
        halo = " halo" if stop.odd_inside else ""
        canvas.text(x + 8, top + 16, title, f"name{halo}", room=BOX - 16)
        ranks = stop.host if stop.hosts > 1 else _spelt(stop.ranks)
        canvas.text(x + 8, top + 32, ranks, f"small{halo}", room=BOX - 16, size=10.5)
        vias = few([via for via in stop.inside if via != UNSAID], 2)
        canvas.text(x + 8, top + 46, vias, f"small{halo}", room=BOX - 16, size=10.5)
        if number + 1 < len(stops) or closed:
            middle = top + HIGH / 2
            canvas.arrow([(x + BOX, middle), (x + BOX + HOP - 4, middle)], "arrow oddhop" if stop.odd_out else "arrow")
            over, _, how = ("" if stop.out == UNSAID else stop.out).partition(" ")
            kind, at = "badtext" if stop.odd_out else "small", x + BOX + HOP / 2 - 3
            canvas.text(at, middle - 7, over, kind, "middle", room=HOP - 8, size=10.5)
            canvas.text(at, middle + 15, how, kind, "middle", room=HOP - 8, size=10.5)
            if number + 1 == len(stops):
                canvas.text(at, middle + 30, "to the first", "small", "middle", room=HOP)
        else:
            canvas.text(x + BOX + 8, top + HIGH / 2 + 4, "not closed in the logs", "small", room=HOP + 40)
    return y + ((len(stops) - 1) // ACROSS) * LINE + HIGH + 26
