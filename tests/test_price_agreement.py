"""One fault, one number: what `scan`, `logs`, `bench`, `place audit` and `diagnose` say that it costs is the same.

Costs of a node's part are compared in `scan` and `diagnose`, those of a job in `logs` and `diagnose`; what a cause
leaves in `bench` and `diagnose`; what a layout takes in `place audit` and `diagnose`.
"""

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

import topodiag
from benchmarks.incidents import FOLDER, incidents
from tests.depth import some_of
from tests.program import run
from topodiag.model.errors import TopodiagError
from topodiag.model.finding import Cost, Finding
from topodiag.words.units import in_gbs, percent, spell_gbs

FIXTURES = FOLDER.parent
JOBS = ("nic-missing", "slow-topology-file", "socket-fallback", "split-tensor-groups")
FOLDERS = {incident.name: incident.path for incident in incidents()} | {job: FIXTURES / "jobs" / job for job in JOBS}
NO_EVIDENCE = {"truth.json", "expected.json", "about.txt"}
ALWAYS = ("half-the-links-of-one-gpu", "two-lanes-of-a-cable", "slot-at-four-lanes", "peermem-gone-after-reboot",
          "sockets-asked-for")  # fmt: skip
"""Those whose faults have a number in GB/s."""
ASKED = tuple(dict.fromkeys((*ALWAYS, *JOBS, *some_of(sorted({*FOLDERS} - {*JOBS}), "price", 5))))


def numbers(cost: Cost) -> tuple[float | None, float | None]:
    return cost.gbs_lost, cost.share


def evidence_of(name: str, *without: str) -> list[str]:
    kept = [path for path in sorted(FOLDERS[name].iterdir()) if path.name not in {*NO_EVIDENCE, *without}]
    return list(map(str, kept))


def parts_of(name: str) -> Iterator[tuple[Callable[[object], object], object]]:
    """The views of an incident or a job beside the whole: each capture by `scan`, what a job left by `logs`."""
    for path in sorted(FOLDERS[name].glob("bundles/*")):
        yield topodiag.scan, str(path)
    if others := evidence_of(name, "bundles", "nccl-tests"):
        yield topodiag.logs, others


def findings_of(view: Callable[[object], object], source: object) -> tuple[Finding, ...]:
    try:
        return view(source).findings  # type: ignore[attr-defined, no-any-return]
    except TopodiagError:
        return ()  # an incident without a log


@cache
def views_of(name: str) -> list[tuple[Finding, ...]]:
    return [findings_of(view, source) for view, source in parts_of(name)]


@pytest.mark.parametrize("name", ASKED)
def test_a_fault_costs_alone_what_it_costs_in_a_diagnosis(name: str) -> None:
    result = topodiag.diagnose(evidence_of(name)).result
    whole = {(finding.id, finding.message): numbers(finding.cost) for finding in result.findings}
    for findings in views_of(name):
        table = {(finding.id, finding.message): numbers(finding.cost) for finding in findings}
        shared = table.keys() & whole.keys()
        assert {key: table[key] for key in shared} == {key: whole[key] for key in shared}
        assert name not in JOBS or shared == table.keys()
        for cause in result.verdict.causes if name in JOBS else ():
            below = (cause.finding, *(consequence.finding for consequence in cause.consequences))
            own = [table[key] for each in below if (key := (each.id, each.message)) in shared and table[key][0]]
            assert own[:1] in ([], [(cause.price.gbs_lost, cause.price.share)])


def test_of_the_faults_that_are_compared_many_have_a_number() -> None:
    priced = [
        finding.id
        for name in ALWAYS
        for findings in views_of(name)
        for finding in findings
        if finding.cost.gbs_lost or finding.cost.share
    ]
    assert len(set(priced)) >= 5


def test_four_views_print_the_same_number_of_the_same_links() -> None:
    """`scan` and `diagnose -v` print what the links lose, `bench` and `diagnose` what is left to the job."""
    folder, evidence = FOLDER / "half-the-links-of-one-gpu", evidence_of("half-the-links-of-one-gpu")
    result = topodiag.diagnose(evidence).result
    cause = result.verdict.causes[0]
    assert cause.price.gbs_lost is not None
    printed = {
        command: " ".join(run(command, *paths, "--width", "200").stdout.split())
        for command, paths in (("scan", [str(folder / "bundles")]), ("bench", evidence), ("diagnose", evidence))
    }
    lost, left = in_gbs(cause.price.gbs_lost), spell_gbs(cause.price.predicted.value)
    assert lost in printed["scan"]
    assert lost in printed["diagnose"]
    assert left in printed["bench"]
    assert left in printed["diagnose"]


CYCLIC = "".join(f"n{rank % 2}\n" for rank in range(16))


def test_a_layout_takes_in_a_diagnosis_what_place_audit_prints(tmp_path: Path) -> None:
    hosts = tmp_path / "hosts"
    hosts.write_text(CYCLIC)
    node = "fixture:dgx-h100-healthy"
    audited = topodiag.audit(str(hosts), system="dgx-h100", tp=8)
    table = {finding.id: numbers(finding.cost) for finding in topodiag.diagnose([node, str(hosts)], tp=8).findings}
    own = {finding.id: numbers(finding.cost) for finding in audited.findings}
    assert own
    assert {key: table[key] for key in own} == own


@pytest.mark.parametrize(("given", "of"), [("", "the communication of a step"), ("tp: 8\ndp: 2\n", "a step")])
def test_groups_that_a_log_places_cost_in_a_diagnosis_what_place_audit_prints(
    given: str, of: str, tmp_path: Path
) -> None:
    """With the sizes of the dimensions a share of the step, without them one of its communication: in both alike."""
    evidence = [str(FIXTURES / "jobs" / "split-tensor-groups")]
    if given:
        (tmp_path / "layout.yaml").write_text(given)
        evidence.append(str(tmp_path / "layout.yaml"))
    audited = {finding.id: numbers(finding.cost) for finding in topodiag.audit(evidence).findings}
    diagnosed = topodiag.diagnose(evidence)
    assert {"PLC001", "PLC006"} <= audited.keys()
    rows = [(finding.id, numbers(finding.cost)) for finding in diagnosed.findings]
    assert all(item in rows for item in audited.items())
    share = f"{percent(audited['PLC006'][1] or 0.0)} "
    audit_page, page = (run(*words, *evidence).stdout for words in (("place", "audit"), ("diagnose", "-v")))
    assert f"cost       {share}lost" in audit_page
    assert f"{share}of {of}" in page
