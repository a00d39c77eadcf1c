"""FLT002 and FLT003: two populations of nodes, and what is otherwise than in the last good capture."""

from dataclasses import replace

import pytest

from tests.checks.wanted import Wanted, expect, shown
from tests.tables import examples
from topodiag.checks.fleet.changed import MAX_TOLD, ChangedSinceGood, changes_between, same_machine
from topodiag.checks.fleet.populations import TwoPopulations
from topodiag.model.finding import Outcome, Severity, Status
from topodiag.model.fleet import Association, Cohort, FactKind, NodeFact, Population, Populations
from topodiag.model.history import Capture, NodeHistory

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
