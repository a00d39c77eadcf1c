"""FLT003: what is otherwise than in the last good capture, and what only looks so."""

from __future__ import annotations

from dataclasses import replace

import pytest

from topodiag.checks.fleet.changed import MAX_TOLD, ChangedSinceGood, changes_between, same_machine
from topodiag.model.finding import Outcome, Severity, Status
from topodiag.model.fleet import FactKind, NodeFact
from topodiag.model.history import Capture, NodeHistory

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


def test_a_width_that_shrank_is_a_warning_with_both_values() -> None:
    (finding,) = judged(changed(NODE, gpu1_width="8")).findings
    assert (finding.severity, finding.where.gpus, finding.message) == (
        Severity.WARNING, ("GPU1",), "pci: width changed from 16 to 8",
    )  # fmt: skip
    assert [origin.source for origin in finding.evidence] == ["gpu07-1.tar.gz", "nvidia-smi.txt:7"]


@pytest.mark.parametrize(("width", "severity"), [("8", Severity.WARNING), ("32", Severity.INFO)])
def test_paths_that_change_with_a_link_follow_it_and_are_no_fault_of_their_own(width: str, severity: Severity) -> None:
    findings = judged(changed(NODE, gpu1_width=width, gpu0_GPUs_by_path="SYS GPU1")).findings
    assert {finding.message.split()[1]: finding.severity for finding in findings} == {
        "width": severity,
        "GPUs": Severity.INFO,
    }


def test_paths_that_change_by_themselves_are_a_warning() -> None:
    (finding,) = judged(changed(NODE, gpu0_GPUs_by_path="SYS GPU1")).findings
    assert finding.severity is Severity.WARNING


def test_the_same_change_of_several_parts_is_one_finding() -> None:
    (finding,) = judged(changed(NODE, gpu0_width="8", gpu1_width="8")).findings
    assert finding.where.gpus == ("GPU0", "GPU1")


@pytest.mark.parametrize("change", [{"_NVIDIA_driver": "570.1"}, {"mlx5_0_firmware": "28.43"}])
def test_what_people_change_on_purpose_is_a_note(change: dict[str, str]) -> None:
    (finding,) = judged(changed(NODE, **change)).findings
    assert finding.severity is Severity.INFO


def test_a_change_for_the_better_is_a_note() -> None:
    (finding,) = judged(NODE, before=changed(NODE, gpu1_width="8")).findings
    assert finding.severity is Severity.INFO


def test_counters_clocks_and_addresses_change_without_a_word() -> None:
    now = changed(NODE, mlx5_0__1_symbol_error=0, _uptime=5.0)
    outcome = judged(now)
    assert outcome.status is Status.CLEAN
    assert outcome.why == "8 facts are as in the last good capture of 1970-01-02 00:00"


def test_a_quantity_that_moved_a_little_has_not_changed() -> None:
    assert judged(changed(NODE, _shared_memory=1050.0)).status is Status.CLEAN
    assert judged(changed(NODE, _shared_memory=500.0)).status is Status.FINDING


def test_a_replaced_part_is_said_to_be_replaced() -> None:
    findings = judged(changed(NODE, gpu1_uuid="GPU-new")).findings
    assert [(finding.severity, finding.message, finding.where.gpus) for finding in findings] == [
        (Severity.INFO, "a part was replaced", ("GPU1",))
    ]


def test_parts_that_are_numbered_otherwise_are_compared_with_themselves() -> None:
    before = [*gpu(0, "GPU-a", "8"), *gpu(1, "GPU-b"), *NODE[4:]]
    now = [*gpu(0, "GPU-b"), *gpu(1, "GPU-a", "8"), *changed(NODE, gpu0_GPUs_by_path="NVL GPU9")[4:]]
    findings = judged(now, before).findings
    assert [(finding.message, finding.observed) for finding in findings] == [
        ("parts are numbered otherwise", "gpu0 is gpu1, gpu1 is gpu0")
    ]


def test_another_machine_of_the_same_name_is_said_once_and_not_compared() -> None:
    now = changed(NODE, gpu0_uuid="GPU-x", gpu1_uuid="GPU-y", mlx5_0_node_GUID="0x9", gpu0_width="1")
    findings = judged(now).findings
    assert [finding.message for finding in findings] == ["this is another machine under the same name"]


def test_a_fact_that_only_one_capture_holds_is_no_change() -> None:
    assert judged(NODE[:2] + NODE[4:]).status is Status.CLEAN
    assert judged([*NODE, fact("acs", "0000:1a:00.0", "redirects peers", "yes")]).status is Status.CLEAN


def test_a_module_that_is_no_longer_in_a_list_is_gone() -> None:
    before = [*NODE, fact("kernel modules", "", "nvidia_peermem", "loaded")]
    (finding,) = judged(NODE, before).findings
    assert (finding.observed, finding.severity) == ("absent", Severity.INFO)
    assert (
        judged([node_fact for node_fact in NODE if node_fact.family != "kernel modules"], before).status is Status.CLEAN
    )


def test_links_that_train_after_a_boot_are_left_out_and_it_is_said() -> None:
    now = changed(NODE, mlx5_0__1_state="INIT", gpu1_width="8")
    assert judged(now).status is Status.FINDING
    outcome = judged(now, up_s=120.0)
    assert outcome.status is Status.CLEAN
    assert "the node had just booted" in outcome.why


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


def test_links_that_sleep_are_no_change_and_links_that_are_gone_are_a_warning() -> None:
    def links(text: str) -> list[NodeFact]:
        return [*NODE, fact("nvlink", "gpu0", "links", text)]

    assert judged(links("2 active, 16 sleep"), before=links("18 active")).status is Status.CLEAN
    (finding,) = judged(links("12 active, 6 inactive"), before=links("18 active")).findings
    assert (finding.severity, finding.expected) == (Severity.WARNING, "18 active, as in the last good capture")


def test_limits_are_those_of_whoever_captured_and_so_a_note() -> None:
    before, now = (
        [*NODE, fact("limits", "", "locked memory", "-1")],
        [*NODE, fact("limits", "", "locked memory", "65536")],
    )
    (finding,) = judged(now, before).findings
    assert finding.severity is Severity.INFO
