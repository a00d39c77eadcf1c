"""FLT001 to FLT003: a node differs from its siblings, two populations, changes since the last good capture."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from tests.checks.wanted import Wanted, expect, shown
from tests.tables import examples
from topodiag.checks.fleet.changed import MAX_TOLD, ChangedSinceGood, changes_between, same_machine
from topodiag.checks.fleet.differs import DiffersFromSiblings, TwoPopulations, matters, weigh
from topodiag.checks.fleet.flapping import ComesAndGoes, drops, fallen_alone, flaps
from topodiag.model.finding import Outcome, Severity, Status
from topodiag.model.fleet import Association, Cohort, FactKind, How, NodeFact, Outlier, Population, Populations, spelled
from topodiag.model.history import Capture, Growth, NodeHistory, PartStates, Spell

HOSTS = tuple(f"n{at}" for at in range(20))


def outlier(family: str = "driver", key: str = "NVIDIA driver", **more: object) -> Outlier:
    made = Outlier(family, key, ("",), "550", "570", ("n3",), 19, 20, source="nvml.json:1")
    return replace(made, **more)  # type: ignore[arg-type]


def cohort(*outliers: Outlier, nodes: Sequence[str] = HOSTS) -> Cohort:
    return Cohort("DGX H100", (), tuple(nodes), compared=100, outliers=outliers)


def outlier_of(told: dict[str, Any]) -> Outlier:
    """The outlier of a row, how it differs by the name of that."""
    more = {name: tuple(value) if isinstance(value, list) else value for name, value in told.items()}
    return outlier(**more | ({"how": How[told["how"]]} if "how" in told else {}))


@examples("nodes", "outliers", "wanted")
def test_what_is_said_of_nodes_that_differ(
    nodes: list[str] | None, outliers: list[dict[str, Any]] | None, wanted: Wanted
) -> None:
    outcome = DiffersFromSiblings().judge(cohort(*map(outlier_of, outliers or ()), nodes=nodes or HOSTS))
    assert shown(outcome, wanted) == wanted


@examples("family", "key", "how", "severity")
def test_severity_is_by_whether_it_can_cost_bandwidth_or_stability(
    family: str, key: str, how: How, severity: Severity
) -> None:
    assert weigh(outlier(family, key, how=how)).severity is severity


def test_two_against_one_is_a_hint_that_excludes_nobody() -> None:
    few = outlier(usual_count=2, total=3)
    expect(DiffersFromSiblings().judge(cohort(few, nodes=("n1", "n2", "n3"))), severity="INFO", confidence="LOW")
    assert not matters(few)


@pytest.mark.parametrize(
    ("value", "unit", "words"),
    [("270456016896", "bytes", "251.9 GiB"), ("unlimited", "bytes", "unlimited"), ("9" * 400, "bytes", "9" * 400),
     ("16", "GT/s", "16 GT/s"), ("3", "errors", "3")],
)  # fmt: skip
def test_a_value_is_spelt_with_its_unit(value: str, unit: str, words: str) -> None:
    assert spelled(value, unit) == words


# --- Drops and flaps as gpud defines them, and when a part that was down is neither


START = 1.7e9
UP, DOWN = "ACTIVE", "DOWN"


def part(*spells: tuple[str, float], name: str = "mlx5_0/1", boot: str = "b", first: float = 1000.0) -> PartStates:
    """Spells by state and by seconds from its first to its last sample; 10 s pass to the next one's first sample."""
    made: list[Spell] = []
    at = first
    for state, length in spells:
        made.append(Spell(state, boot, at, at + length, START + at))
        at += length + 10
    return PartStates(name, tuple(made))


def end(*parts: PartStates) -> float:
    return max(states.spells[-1].end_s for states in parts)


def flapping(*parts: PartStates) -> list[str]:
    return list(flaps(parts, end(*parts)))


CYCLE = ((DOWN, 30.0), (UP, 20.0))


@examples("spells", "later_days", "flap", "drop")
def test_flaps_and_drops_of_a_part(
    spells: list[list[Any]], later_days: float | None, flap: bool | None, drop: bool | None
) -> None:
    """Spells by state and length; a text before them is the boot that they are of, in which the first begins at the
    seconds behind it, and a state behind a length the number of times that the part fell again."""
    made: list[Spell] = []
    boot, at = "b", 1000.0
    for first, second, *more in spells:
        if first in {"a", "b", "c", "d", "e"}:
            boot, at = first, second
            continue
        made.append(Spell(first, boot, at, at + second, START + at, **({"fallen": more[0]} if more else {})))
        at += second + 10
    states = (PartStates("mlx5_0/1", tuple(made)),)
    now = end(*states) + 86400 * (later_days or 0.0)
    assert flap is None or bool(flaps(states, now)) is flap
    assert drop is None or bool(drops(states, now)) is drop


def test_a_watch_that_ended_long_before_the_last_capture_tells_no_drop_and_no_flap() -> None:
    parts = (part((UP, 60.0), (DOWN, 600.0)), part((UP, 600.0), *CYCLE, *CYCLE, *CYCLE, name="mlx5_1/1"))
    watched = NodeHistory("gpu07", states=parts, end_s=end(*parts))
    assert len(ComesAndGoes().judge(watched).findings) == 2
    for days, findings in ((0.5, 2), (2.0, 1), (6.0, 0)):
        now = Capture("c", "gpu07", time_s=end(*parts) + days * 86400)
        assert len(ComesAndGoes().judge(replace(watched, now=now)).findings) == findings


def test_parts_that_go_down_together_are_the_node_or_its_switch() -> None:
    everything = [part((UP, 600.0), *CYCLE, *CYCLE, *CYCLE, name=f"mlx5_{n}/1") for n in range(8)]
    assert not flapping(*everything)
    quiet = [part((UP, 900.0), name=f"mlx5_{n}/1") for n in range(1, 8)]
    assert flapping(everything[0], *quiet) == ["mlx5_0/1"]


def test_a_hundred_thousand_changes_are_judged_quickly() -> None:
    assert flapping(part((UP, 600.0), *(CYCLE * 50_000)))


def test_flaps_and_drops_are_errors_and_name_the_part() -> None:
    parts = (part((UP, 900.0), name="mlx5_1/1"), part((UP, 600.0), *CYCLE, *CYCLE, *CYCLE, name="gpu3/link6"),
             part((UP, 60.0), (DOWN, 600.0)))  # fmt: skip
    outcome = ComesAndGoes().judge(NodeHistory("gpu07", states=parts, end_s=end(*parts)))
    assert [(finding.severity, finding.where.links, finding.where.nics) for finding in outcome.findings] == [
        (Severity.ERROR, ("GPU3 link 6",), ()),
        (Severity.ERROR, (), ("mlx5_0",)),
    ]
    assert "3 times, for 30 s," in outcome.findings[0].observed


def test_a_node_that_nobody_watched_is_unknown_and_a_quiet_one_clean() -> None:
    assert ComesAndGoes().judge(NodeHistory("gpu07")).status is Status.UNKNOWN
    quiet = part((UP, 900.0))
    assert ComesAndGoes().judge(NodeHistory("gpu07", states=(quiet,), end_s=end(quiet))).status is Status.CLEAN


def grown(part: str, count: int, key: str = "link_downed") -> Growth:
    return Growth("nic", part, key, count, 168.0, count, "times")


def test_without_a_watch_a_link_that_fell_three_times_between_captures_is_a_warning() -> None:
    history = NodeHistory("gpu07", grown=(grown("mlx5_0/1", 4), grown("mlx5_1/1", 0), grown("mlx5_2/1", 1)))
    expect(ComesAndGoes().judge(history), severity="WARNING", nics=("mlx5_0",))


@pytest.mark.parametrize(
    ("counts", "why"),
    [((2, 0, 0), "a cable that somebody moved"), ((5, 5, 4), "all fell: the switch was served"), ((0, 0, 0), "none")],
)
def test_falls_that_others_share_or_that_are_few_are_silent(counts: Sequence[int], why: str) -> None:
    assert fallen_alone([grown(f"mlx5_{n}/1", count) for n, count in enumerate(counts)]) == [], why
    assert fallen_alone([grown("mlx5_0/1", 99, "symbol_error")]) == []


OLD, NEW = tuple(f"n{at}" for at in range(8)), tuple(f"n{at}" for at in range(8, 20))
SPLIT = Populations(
    (("driver", "NVIDIA driver", ("",)), ("os", "kernel", ("",))),
    (Population(("570", "5.15"), NEW), Population(("550", "5.4"), OLD)),
    20,
)
SPLITS = {
    "two facts": SPLIT,
    "two facts, as racks": replace(SPLIT, association=Association("rack", ("r1", "r2"), 0.9)),
    "MTU": replace(SPLIT, facts=(("mtu", "MTU", ("mlx5_0/1",)),)),
}


@examples("nodes", "splits", "wanted")
def test_populations_of_nodes(nodes: list[str] | None, splits: list[str], wanted: Wanted) -> None:
    cohort = Cohort("DGX H100", (), tuple(nodes or OLD + NEW), compared=100, populations=tuple(map(SPLITS.get, splits)))
    assert shown(TwoPopulations().judge(cohort), wanted) == wanted


# --- FLT003: what is otherwise than in the last good capture, and what only looks so


DAY = 86400.0


def fact(family: str, part: str, key: str, value: str | float, kind: FactKind = FactKind.CATEGORY) -> NodeFact:
    return NodeFact(family, part, key, value, kind, source="nvidia-smi.txt:7")


def gpu(index: int, serial: str, width: str = "16") -> list[NodeFact]:
    part = f"gpu{index}"
    return [fact("gpu", part, "uuid", serial, FactKind.IDENTITY), fact("pci", part, "width", width)]


NODE = [
    *gpu(0, "GPU-a"), *gpu(1, "GPU-b"),
    fact("nic", "mlx5_0", "node GUID", "0x1", FactKind.IDENTITY),
    fact("firmware", "mlx5_0", "firmware", "28.39"),
    fact("nic", "mlx5_0/1", "state", "ACTIVE"),
    fact("nic", "mlx5_0/1", "symbol_error", 7, FactKind.COUNTER),
    fact("pairing", "gpu0", "GPUs by path", "NVL GPU1"),
    fact("driver", "", "NVIDIA driver", "550.54"),
    fact("os", "", "uptime", 4000.0, FactKind.MOMENT),
    fact("limits", "", "shared memory", 1000.0, FactKind.NUMBER),
    fact("kernel modules", "", "nvidia", "loaded"),
]  # fmt: skip


def capture(facts: list[NodeFact], day: int = 1, up_s: float = 90000.0) -> Capture:
    return Capture(f"c{day}", "gpu07", day * DAY, day * DAY - up_s, f"gpu07-{day}.tar.gz", facts=tuple(facts))


def changed(facts: list[NodeFact], **changes: str | float) -> list[NodeFact]:
    """Facts with other values, by `part key` with underscores for blanks and slashes."""
    wanted = {name.replace("__", "/", 1) if "__" in name else name: value for name, value in changes.items()}
    node_facts = [
        replace(node_fact, value=wanted.pop(f"{node_fact.part}_{node_fact.key}".replace(" ", "_"), node_fact.value))
        for node_fact in facts
    ]
    assert not wanted, wanted
    return node_facts


def judged(now: list[NodeFact], before: list[NodeFact] | None = None, **options: float) -> Outcome:
    held = capture(NODE if before is None else before)
    return ChangedSinceGood().judge(NodeHistory("gpu07", capture(now, 2, **options), held))


MORE = {
    "links": lambda text: fact("nvlink", "gpu0", "links", text),
    "locked memory": lambda text: fact("limits", "", "locked memory", text),
    "module": lambda text: fact("kernel modules", "", text, "loaded"),
    "acs": lambda text: fact("acs", "0000:1a:00.0", "redirects peers", text),
}
"""Facts that a row may add to those of the node."""


def facts_of(told: dict[str, str | float]) -> list[NodeFact]:
    """The node's facts with the changes of a row, and those that it adds."""
    added = [MORE[name](str(value)) for name, value in told.items() if name in MORE]
    return [*changed(NODE, **{name: value for name, value in told.items() if name not in MORE}), *added]


@examples("before", "now", "wanted")
def test_what_changed_since_the_node_was_well(
    before: dict[str, str | float], now: dict[str, str | float], wanted: Wanted
) -> None:
    assert shown(judged(facts_of(now), facts_of(before)), wanted) == wanted


@pytest.mark.parametrize(("width", "severity"), [("8", Severity.WARNING), ("32", Severity.INFO)])
def test_paths_that_change_with_a_link_follow_it_and_are_no_fault_of_their_own(width: str, severity: Severity) -> None:
    findings = judged(changed(NODE, gpu1_width=width, gpu0_GPUs_by_path="SYS GPU1")).findings
    told = {finding.message.split()[1]: finding.severity for finding in findings}
    assert told == {"width": severity, "GPUs": Severity.INFO}


def test_parts_that_are_numbered_otherwise_are_compared_with_themselves() -> None:
    before = [*gpu(0, "GPU-a", "8"), *gpu(1, "GPU-b"), *NODE[4:]]
    now = [*gpu(0, "GPU-b"), *gpu(1, "GPU-a", "8"), *changed(NODE, gpu0_GPUs_by_path="NVL GPU9")[4:]]
    findings = judged(now, before).findings
    assert [(finding.message, finding.observed) for finding in findings] == [
        ("parts are numbered otherwise", "gpu0 is gpu1, gpu1 is gpu0")
    ]


def test_facts_and_lists_that_a_capture_does_not_hold_are_no_change() -> None:
    assert judged(NODE[:2] + NODE[4:]).status is Status.CLEAN
    without = [node_fact for node_fact in NODE if node_fact.family != "kernel modules"]
    assert judged(without, [*NODE, MORE["module"]("nvidia_peermem")]).status is Status.CLEAN


def test_links_that_train_after_a_boot_are_left_out_and_it_is_said() -> None:
    now = changed(NODE, mlx5_0__1_state="INIT", gpu1_width="8")
    assert judged(now).status is Status.FINDING
    expect(judged(now, up_s=120.0), status="clean", why="*the node had just booted*")


def test_the_first_capture_of_a_node_is_unknown() -> None:
    outcome = ChangedSinceGood().judge(NodeHistory("gpu07", capture(NODE)))
    assert (outcome.status, outcome.findings) == (Status.UNKNOWN, ())


def test_captures_without_a_fact_in_common_are_unknown() -> None:
    assert judged([fact("os", "", "kernel", "6.8")], before=[fact("gpu", "", "GPUs", "8")]).status is Status.UNKNOWN


def test_very_many_changes_are_counted() -> None:
    before = [fact("pci", f"0000:{n:02x}:00.0", "width", f"{n}") for n in range(90)]
    now = [fact("pci", f"0000:{n:02x}:00.0", "width", f"{n + 100}") for n in range(90)]
    findings = judged(now, before).findings
    assert len(findings) == MAX_TOLD + 1
    assert findings[-1].message == "50 more facts changed"


def test_the_same_machine_is_known_by_its_parts_alone() -> None:
    assert same_machine(NODE, changed(NODE, gpu1_uuid="GPU-new")) is True
    assert same_machine(NODE, gpu(0, "GPU-z")) is False
    assert same_machine(NODE, NODE[7:]) is None
    assert changes_between(capture(NODE), capture(gpu(0, "GPU-z"))).another
