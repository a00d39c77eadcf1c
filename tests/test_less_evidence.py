"""Less evidence never makes a fault: what is not seen is unknown, and an unknown is no alarm.

Of each fixture a fifth of its kinds of evidence stands alone, and a fifth is left out: each kind in some fixture, all
in all with TOPODIAG_TESTS=deep.
"""

import json
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fixtures.generate.machine import Machine
from tests.depth import some_of
from tests.healthy_machines import MACHINES, files_of
from topodiag.checks.registry import Subject
from topodiag.checks.run import run
from topodiag.evidence.intake.bundle import from_memory
from topodiag.evidence.intake.collected import fixture_path, fixtures
from topodiag.evidence.intake.reader import ReadNode, read_node
from topodiag.model.devices import NicRole
from topodiag.model.finding import Outcome, Severity, Status

NAMES = fixtures()
HEALTHY = {make.__name__: make for make in MACHINES}
Keep = Callable[[dict[str, Any]], bool]

SHARE = 5
"""Of the kinds of a machine so many-th is asked."""
OF_AMD = "mi300x-gpu1-gpu5-no-xgmi"
"""Asked whole: AMD's kinds of evidence stand in few machines."""

SYMPTOM = {
    # The fabric explains the pairs (NVL005, NVL001). Without its words the pairs are the only sign of a true fault.
    ("dgx-h100-gpu5-off-fabric", "NVL004"),
    ("fm-down-a100", "NVL004"),
    ("l40s-pcie-acs-on", "HST003"),  # the domains themselves, where they are read, are PCI004's
    ("no-gpu", "HST001"),  # a limit alone does not say that the node has no GPU
}
"""Findings that a part of the evidence may give and the whole explains by another finding."""

SILENT_EXCUSES = {
    # Without the uptime a node that has just booted cannot be told from one whose links and ports never came up.
    ("fresh_boot", "NVL001"), ("fresh_boot", "NVL005"), ("fresh_boot", "NIC001"),
    # GPUs under MIG look like GPUs without links to `topo -m`, `topo -p2p` and `nvlink -s`, which do not say MIG; with
    # other GPUs joined, a dead GPU is by far the likelier reason.
    ("mig_mixed", "NVL001"), ("mig_mixed", "NVL004"),
    # Which NICs are the storage's only PCI places and routes say; of equal adapters in `ibstat` two are down.
    ("storage_of_same_product", "NIC001"),
}  # fmt: skip
"""Healthy machines whose excuse is in one source alone, and what the other sources then look like."""

TELLING = (Status.FINDING, Status.CLEAN, Status.UNKNOWN, Status.NOT_APPLICABLE)
MAY_SETTLE = {
    "TOP003", "NVL004", "PCI001", "PCI002", "PCI003", "PCI004", "NVL005", "ENV002", "NUM001", "NUM002", "NIC003",
    "HST001", "HST002", "HST003", "HST004",
}  # fmt: skip
"""Checks that are not applicable for a reason (bare metal, a product without NVLink, Grace); without that reason the
other evidence may show that all is well: `clean` is as silent."""


@cache
def capture(name: str) -> tuple[dict[str, Any], dict[str, bytes]]:
    if name in HEALTHY:
        return files_of(HEALTHY[name]())
    place = fixture_path(name)
    files = {path.relative_to(place).as_posix(): path.read_bytes() for path in place.rglob("*") if path.is_file()}
    return json.loads(files.pop("manifest.json")), files


def scan(name: str, keep: Keep) -> tuple[Outcome, ...]:
    """The verdicts on a capture from which only some items are left, as if no one had asked for the others."""
    manifest, files = capture(name)
    items = [item for item in manifest["items"] if keep(item)]
    return run(Subject.NODE, (read_node(from_memory(name, manifest | {"items": items}, files)).node,))


@cache
def whole(name: str) -> dict[str, Outcome]:
    outcomes: dict[str, Outcome] = {}
    for outcome in sorted(scan(name, lambda _: True), key=lambda outcome: -TELLING.index(outcome.status)):
        outcomes[outcome.check] = outcome  # of two subjects that carry one id, the one that says more
    return outcomes


@cache
def kinds(name: str) -> tuple[str, ...]:
    return tuple(sorted({item["kind"] for item in capture(name)[0]["items"]}))


def judge(name: str, view: str, outcomes: tuple[Outcome, ...]) -> None:
    for outcome in outcomes:
        before = whole(name)[outcome.check]
        place = (name, view, outcome.check, outcome.status.value, outcome.why, [f.message for f in outcome.findings])
        assert "the check failed" not in outcome.why, place
        if outcome.findings:
            assert before.findings or (name, outcome.check) in SYMPTOM, place
        elif outcome.status is Status.CLEAN:
            settled = before.status is Status.NOT_APPLICABLE and outcome.check in MAY_SETTLE
            assert before.status is Status.CLEAN or settled, place


@pytest.mark.parametrize("name", NAMES)
def test_one_source_alone_makes_no_new_finding(name: str) -> None:
    for kind in some_of(kinds(name), f"only {name}", SHARE, always=name == OF_AMD):
        judge(name, f"only {kind}", scan(name, lambda item, kind=kind: item["kind"] == kind))


@pytest.mark.parametrize("name", NAMES)
def test_one_source_less_makes_no_new_finding(name: str) -> None:
    for kind in some_of(kinds(name), f"without {name}", SHARE, always=name == OF_AMD):
        judge(name, f"without {kind}", scan(name, lambda item, kind=kind: item["kind"] != kind))


def test_every_kind_of_evidence_stands_alone_and_is_left_out_somewhere() -> None:
    for view in ("only", "without"):
        asked = {
            kind for name in NAMES for kind in some_of(kinds(name), f"{view} {name}", SHARE, always=name == OF_AMD)
        }
        assert asked == {kind for name in NAMES for kind in kinds(name)}


@settings(suppress_health_check=list(HealthCheck))
@given(st.data())
def test_any_part_of_the_evidence_makes_no_new_finding(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(NAMES))
    kept = data.draw(st.sets(st.sampled_from(kinds(name))))
    judge(name, "only " + ", ".join(sorted(kept)), scan(name, lambda item: item["kind"] in kept))


@settings(suppress_health_check=list(HealthCheck))
@given(st.data())
def test_no_part_of_a_healthy_machine_gives_an_alarm(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(HEALTHY)))
    kept = data.draw(st.sets(st.sampled_from(kinds(name)), min_size=1))
    for outcome in scan(name, lambda item: item["kind"] in kept):
        if (name, outcome.check) not in SILENT_EXCUSES:
            alarms = [finding.message for finding in outcome.findings if finding.severity > Severity.INFO]
            assert alarms == [], (name, sorted(kept), outcome.check)


# --- Healthy machines of all makes give no warning and no error: users trust a tool until its first false alarm


C, S, M = NicRole.COMPUTE, NicRole.STORAGE, NicRole.MANAGEMENT
RAILS = dict.fromkeys((f"mlx5_{n}" for n in (0, 3, 4, 5, 6, 9, 10, 11)), C)
STORAGE = dict.fromkeys((f"mlx5_{n}" for n in (1, 2, 7, 8)), S)

ROLES: dict[str, dict[str, NicRole]] = {
    "azure_a100": dict.fromkeys((f"mlx5_ib{n}" for n in range(8)), C) | {"mlx5_an0": M},
    "aws_p5": {"rdmap65s0": C, "rdmap180s0": C, "ens32": M},
    "gcp_a3_mega": {"enp0s12": M, "eth1": M},
    "h200_ten_nics": RAILS | STORAGE,
    "storage_of_same_product": RAILS | STORAGE,
    "roce_bonds": {"mlx5_bond_0": C, "mlx5_bond_3": C, "eno1": M},
    "dgx2": {"mlx5_0": C, "mlx5_7": C, "enp6s0": M},
    "one_h100_pcie": {"mlx5_0": C, "eno1": M},
    "gh200": {"mlx5_0": C, "eno1": M},
    "vfio": RAILS | STORAGE,
    "slurm_two_of_eight": RAILS | STORAGE,
    "slurm_one_of_eight": RAILS | STORAGE,
    "slurm_two_of_mesh": dict.fromkeys((f"mlx5_{n}" for n in range(4)), C),
}
"""What some of their NICs are for. A GPU that the job cannot see still makes its neighbour a compute NIC."""


def read_of(make: Callable[[], Machine]) -> ReadNode:
    manifest, files = files_of(make())
    return read_node(from_memory("machine", manifest, files))


@pytest.mark.parametrize("make", MACHINES, ids=lambda make: make.__name__)
def test_a_healthy_machine_gives_no_warning_and_no_error(make: Callable[[], Machine]) -> None:
    node = read_of(make)
    outcomes = run(Subject.NODE, (node.node,))
    alarms = [
        (finding.id, finding.message)
        for outcome in outcomes
        for finding in outcome.findings
        if finding.severity > Severity.INFO
    ]
    assert alarms == []
    assert [outcome.why for outcome in outcomes if "the check failed" in outcome.why] == []
    assert [line.why for line in node.unread if "reader failed" in line.why] == []
    roles = {nic.name: nic.role for nic in node.node.nics}
    wanted = ROLES.get(make.__name__, {})
    assert {name: roles[name] for name in wanted} == wanted
