"""Does what the causes predict agree with what was measured? Where it does, that is the proof."""

from __future__ import annotations

from collections.abc import Mapping

from topodiag.lazy import dataclass
from topodiag.model.bench import BenchRun
from topodiag.model.verdict import Agreement, Quantity
from topodiag.words.units import in_gbs, percent, plural, spell_bytes, spell_gbs

TOLERANCE = 0.15
"""Share by which a prediction and a measurement may differ and still be called the same."""
SLIGHT = 0.03
"""Share of loss below which a cause cannot be told from none by its size: healthy runs vary as much."""
LEFT = 1.5
"""Times by which what a great loss leaves may differ and still be called the same, where the losses are: of 477 GB/s,
68 were predicted to be left, and 47 are. Beyond it almost any great loss would prove almost any cause."""
PRINTED = 0.01
"""Share by which a figure that was printed with one digit may differ from the one it was made of."""
HALF = 0.5
"""Share of the measured loss that a cause must predict at least to be called its explanation."""


@dataclass(frozen=True, slots=True)
class Compared:
    """How a prediction stands to a measurement, with the sentence for a reader."""

    agreement: Agreement
    says: str


def measured_of(run: BenchRun, what: str) -> Quantity | None:
    """What the run reached at its greatest size; None for a job that nobody measured."""
    top = run.top
    if top is None or top[1] <= 0:
        return None
    size, gbs = top
    hosts = len(run.hosts)
    where = f" on {plural(hosts, 'node')}" if hosts else ""
    source = f"nccl-tests at {spell_bytes(size)}{where}" + (f", {run.source}" if run.source else "")
    return Quantity(what, gbs, source=source)


def compare(  # noqa: PLR0917 - three figures, and the words for them
    whole: float, predicted: float, measured: float, cause: str, least: float = 1.0, unreckoned: str = ""
) -> Compared:
    """All three in GB/s: what the machines reach without causes and with them, and what was measured. `cause` in words,
    such as "the cause" or "these 2 causes"; `least` the share of the prediction down to which a run may fall, and
    `unreckoned` why."""
    off = measured / predicted - 1
    numbers = f"predicted {in_gbs(predicted)} of {spell_gbs(whole)}, measured {spell_gbs(measured)}"
    numbers += f", {percent(off, signed=True)}"
    loss, missing = whole - predicted, whole - measured
    many = cause.startswith("these")
    verb, costs = ("explain", "cost") if many else ("explains", "costs")
    if loss < SLIGHT * whole:
        if missing < TOLERANCE * whole:
            return Compared(Agreement.AGREES, f"{cause} {costs} almost nothing here, as measured ({numbers})")
        return Compared(Agreement.PART, f"{in_gbs(predicted - measured)} stay unexplained ({numbers})")
    is_missing = missing > 0 and abs(loss - missing) <= TOLERANCE * missing
    if is_missing and max(measured, predicted) <= LEFT * min(measured, predicted):
        if abs(off) > TOLERANCE:
            numbers += f", losses {percent(loss / whole)} and {percent(missing / whole)}"
        return Compared(Agreement.AGREES, f"{cause} {verb} {_part(loss, missing)} ({numbers})")
    nearer_to_whole = abs(whole - measured) < abs(measured - predicted)
    if measured > predicted * (1 + TOLERANCE) or (measured > predicted and nearer_to_whole):
        relation = "no such loss was measured" if nearer_to_whole else "the run lost less than predicted"
        return Compared(Agreement.EXCEEDS, f"{relation}: the cause was not, or not fully, active in it ({numbers})")
    if least < 1 and least * predicted <= measured < predicted:
        bounds = f"expect {spell_gbs(least * predicted)} to {in_gbs(predicted)}"
        bounds += f": NCCL's model leaves out {unreckoned}" if unreckoned else ""
        return Compared(Agreement.AGREES, f"{cause} {verb} the loss ({numbers}); {bounds}")
    if measured < predicted * (1 - TOLERANCE) or loss < HALF * missing:
        rest = f"{in_gbs(predicted - measured)} stay unexplained"
        return Compared(Agreement.PART, f"{cause} {verb} {_part(loss, missing)}, {rest} ({numbers})")
    return Compared(Agreement.AGREES, f"{cause} {verb} the loss ({numbers})")


def _part(loss: float, missing: float) -> str:
    """How much of the loss, where that is not all but for what runs vary by."""
    share = loss / missing
    if share > 1 + SLIGHT:
        return "the loss; slightly more was predicted"
    return "the loss" if share > 1 - SLIGHT else f"{percent(share)} of the loss"


def as_another_algorithm(predicted: float, measured: float, taken: str, reached: Mapping[str, float]) -> str:
    """That a measurement which differs from the prediction is what another algorithm reaches on the same machines. In
    GB/s; `taken` is the prediction's algorithm, `reached` holds what each reaches. A sentence, "" where none fits."""
    if abs(measured / predicted - 1) <= TOLERANCE:
        return ""
    near = {name: gbs for name, gbs in reached.items() if name != taken and abs(measured / gbs - 1) <= TOLERANCE}
    if not near:
        return ""
    name = min(near, key=lambda other: abs(near[other] - measured))
    asked = "NCCL_DEBUG_SUBSYS=TUNING shows which one ran"
    return f"{name} reaches {in_gbs(near[name])} on these machines, where NCCL's model takes {taken}: {asked}"


def same_as_table(
    predicted_gbs: float,
    algorithm: str,
    table: Mapping[tuple[str, str, str], tuple[float, float]],
    collective: str,
    factor: float,
) -> str:
    """How NCCL's own tuning table, as its log prints it, stands to what is modelled here for a large operation:
    `predicted_gbs` bus bandwidth of `algorithm` (`NVLSTree/Simple`), `factor` bus bandwidth over the table's. A
    sentence, "" where the log has no such row."""
    wanted = _plain(algorithm.replace("/", ""))
    for (name, row, protocol), (_, gbs) in table.items():
        if name == collective and _plain(row + protocol) == wanted and gbs > 0:
            theirs = gbs * factor
            if abs(theirs - predicted_gbs) <= PRINTED * theirs:
                return f"NCCL's own table in the log says the same: {in_gbs(theirs)} of {algorithm}"
            ours = spell_gbs(predicted_gbs)
            return f"NCCL's own table in the log has {in_gbs(theirs)} of {algorithm}, {ours} are modelled"
    return ""


def _plain(text: str) -> str:
    return text.replace("_", "").lower()
