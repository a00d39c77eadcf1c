"""Incidents with all kinds of evidence: the verdict has the root cause first, what follows from it stands
below and never beside it, nothing false is said, what is healthy is healthy. `pytest -s` prints the table."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import topodiag
from topodiag.model.errors import InputError
from topodiag.model.finding import Severity
from topodiag.model.result import Result
from topodiag.model.verdict import Agreement, CauseStatus, State, Verdict

INCIDENTS = Path(__file__).resolve().parents[2] / "shared" / "corpus" / "incidents"
NAMES = sorted(path.parent.name for path in INCIDENTS.glob("*/truth.json"))
MISSED: dict[str, str] = {}
"""Incidents whose root cause does not come first yet, and why."""
NOT_IN_CATALOGUE = {"gpu-off-the-bus": "GPU001"}
"""The check of a root cause that had none when the truth was written."""
STATES = {
    "collective-mismatch": State.HUNG,
    "gpu-off-the-bus": State.FAILED,
    "healthy-but-less-than-hoped": State.HEALTHY,
}
"""The state where it is not slow."""
FALSE = {
    "acs-on-l40s": (("NVL", ""), ("PCI004", "l40s-12"), ("GDR002", ""), ("P2P001", "l40s-12")),
    "benchmark-over-one-nic": (("NIC", ""), ("NVL", "")),
    "cable-unplugged": (("NIC005", "gpu-a11"), ("NIC001", "gpu-a11"), ("ENV", "")),
    "collective-mismatch": (("GPU", ""), ("NVL", ""), ("PCI", ""), ("NIC", ""), ("JOB009", "")),
    "gpu-off-the-bus": (("NIC", ""), ("NET008", ""), ("GPU001", "gpu-h06")),
    "nvlinks-of-one-gpu-down": (("NIC", ""), ("NVL001", "gpu-017")),
    "odd-node-without-bundle": (("NIC001", ""), ("NIC005", "w118"), ("NIC005", "w119"), ("ENV", "")),
    "pods-without-rdma-devices": (("NIC", ""), ("PCI", ""), ("GPU", "")),
    "stale-topology-file": (("PCI001", ""), ("TOP002", "gn-0411")),
    "tensor-groups-scattered": (("NIC", ""), ("NVL", ""), ("PCI", "")),
    "two-jobs-in-one-folder": (("JOB001", ""), ("NIC005", "q-301"), ("NIC005", "q-302"), ("NIC005", "q-303")),
}
"""What `must_not` of the truth forbids as a cause: (start of a check id, host or "" for any)."""

pytestmark = pytest.mark.skipif(not NAMES, reason=f"the corpus is not at {INCIDENTS}")


def truth_of(name: str, folder: Path = INCIDENTS) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((folder / name / "truth.json").read_text())
    return document


@cache
def diagnosed(name: str) -> Result:
    return topodiag.diagnose(INCIDENTS / name).result


def verdict_of(name: str) -> Verdict:
    verdict = diagnosed(name).verdict
    assert verdict is not None
    return verdict


def wanted_of(name: str) -> set[str]:
    wanted = {check for root in truth_of(name)["root_causes"] for check in root["check_ids"] if check}
    return wanted | ({NOT_IN_CATALOGUE[name]} if name in NOT_IN_CATALOGUE else set())


@pytest.mark.parametrize("name", NAMES)
def test_the_root_cause_comes_first_on_its_host(name: str) -> None:
    causes, wanted = verdict_of(name).causes, wanted_of(name)
    if not wanted:
        assert not causes
        return
    first = causes[0].finding if causes else None
    assert (first is not None and first.id in wanted) != (name in MISSED), f"said {first}, wanted one of {wanted}"
    if first is not None and name not in MISSED:
        hosts = {host for root in truth_of(name)["root_causes"] for host in root["hosts"]}
        assert hosts.intersection(first.where.nodes)


@pytest.mark.parametrize("name", NAMES)
def test_consequences_stand_below_the_cause_and_never_beside_it(name: str) -> None:
    if name in MISSED:
        pytest.skip(MISSED[name])
    verdict, wanted = verdict_of(name), wanted_of(name)
    consequences = {
        check for consequence in truth_of(name)["consequences"] for check in consequence["check_ids"]
    } - wanted
    assert not [cause.finding.id for cause in verdict.causes if cause.finding.id in consequences]
    assert len(verdict.causes) <= max(len(truth_of(name)["root_causes"]), 0), "one fault is one cause"


@pytest.mark.parametrize("name", NAMES)
def test_nothing_false_is_said(name: str) -> None:
    for cause in verdict_of(name).causes:
        for start, host in FALSE.get(name, ()):
            on = not host or host in cause.finding.where.nodes
            assert not (cause.finding.id.startswith(start) and on), cause.finding.message


@pytest.mark.parametrize("name", NAMES)
def test_the_state_is_as_it_was(name: str) -> None:
    assert verdict_of(name).state is STATES.get(name, State.SLOW)


def test_of_two_jobs_one_is_healthy_and_of_a_benchmark_and_a_job_the_benchmark_is_slow() -> None:
    two = verdict_of("two-jobs-in-one-folder")
    assert [job.state for job in two.jobs] == [State.HEALTHY, State.SLOW]
    run = verdict_of("benchmark-over-one-nic")
    shown = [(job.name.endswith("(nccl-tests)"), job.state) for job in run.jobs]
    assert shown == [(False, State.HEALTHY), (True, State.SLOW)]


def test_why_the_odd_node_lacks_a_nic_is_open_and_a_capture_of_it_is_asked_for() -> None:
    verdict = verdict_of("odd-node-without-bundle")
    assert verdict.causes[0].status is not CauseStatus.ESTABLISHED
    assert "w120" in verdict.next_evidence[0].where
    assert verdict.next_evidence[0].command.startswith("topodiag scan --save")


def test_a_healthy_machine_says_first_that_the_expectation_is_wrong() -> None:
    healthy = verdict_of("healthy-but-less-than-hoped")
    assert "an expectation above it is wrong" in healthy.first[0]
    assert not [
        finding for finding in diagnosed("healthy-but-less-than-hoped").findings if finding.severity is Severity.ERROR
    ]


@pytest.mark.parametrize("name", NAMES)
def test_the_hosts_are_who_the_truth_says(name: str) -> None:
    identity = diagnosed(name).identity
    truth = truth_of(name)["identity"]
    for alias, bundle in truth.items():
        (host,) = [host for host in identity.hosts if host.name == identity.name(alias)]
        print(f"{name:30} {alias:20} is {host.name:16} by {', '.join(host.sources)}")  # noqa: T201 - the table
        assert ("bundle" in host.sources) == (bundle is not None)
        assert bundle is None or host.name == Path(bundle).name.removesuffix(".tar.gz")
    named = {identity.name(alias) for alias in truth}
    assert {host.name for host in identity.hosts if set(host.sources) & {"bundle", "log"}} == named, "and nobody else"


@pytest.mark.parametrize("name", [name for name in NAMES if (INCIDENTS / name / "nccl-tests").is_dir()])
def test_the_predicted_loss_agrees_with_the_table_within_15_percent(name: str) -> None:
    causes = verdict_of(name).causes
    if not truth_of(name)["root_causes"] or name in MISSED:
        return
    price = causes[0].price
    assert price.measured is not None, name
    assert price.predicted is not None, name
    assert price.agreement is Agreement.AGREES, price.says


# --- What NCCL's own RAS said of emulated jobs: the guilty rank is named, and nobody in a healthy one


RAS = Path(__file__).resolve().parents[2] / "shared" / "corpus" / "ras"
ANSWERED = sorted(path.parent.name for path in RAS.glob("*/truth.json"))
UNSEEN = {
    "split_incomplete-2.26.6": "RAS says RUNNING and OK of ranks that wait in ncclCommSplit, no line names it",
    "init_rank_missing-2.26.6": "RAS closes the connection before the first communicator",
    "init_rank_missing-2.29.7": "RAS knows nothing of a rank that never came",
}
"""Scenarios whose guilty rank neither RAS nor the log can name, and why."""
BY_LOG = {"split_incomplete-2.29.7": "RAS says RUNNING and OK of ranks that wait in ncclCommSplit"}
"""Scenarios whose guilty rank only the log names."""

needs_ras = pytest.mark.skipif(not ANSWERED, reason=f"the corpus is not at {RAS}")


def blamed(paths: list[Path]) -> tuple[set[int], set[str]]:
    """Ranks and hosts of findings that say who is at fault."""
    findings = [finding for finding in topodiag.diagnose(paths).findings if finding.severity is Severity.ERROR]
    named = [finding for finding in findings if finding.id == "JOB006"]
    return {rank for finding in named for rank in finding.where.ranks}, {
        host for finding in named for host in finding.where.nodes
    }


@needs_ras
@pytest.mark.parametrize("name", ANSWERED)
def test_the_guilty_rank_is_named_by_answers_and_logs(name: str) -> None:
    truth = truth_of(name, RAS)
    ranks, hosts = blamed([RAS / name])
    if name in UNSEEN:
        assert not ranks, "somebody innocent is blamed"
        return
    assert ranks == {each["rank"] for each in truth["guilty"]}
    assert hosts == {each["host"] for each in truth["guilty"]}


@needs_ras
@pytest.mark.parametrize("name", [name for name in ANSWERED if name not in UNSEEN | BY_LOG])
def test_the_guilty_process_is_named_by_answers_alone(name: str) -> None:
    truth = truth_of(name, RAS)
    ranks, hosts = blamed([RAS / name / "ras"])
    assert hosts == {truth["hosts"][each["host"]] for each in truth["guilty"]}
    assert ranks <= {each["rank"] for each in truth["guilty"]}, "text of split communicators names no world rank"


@needs_ras
@pytest.mark.parametrize("name", [name for name in ANSWERED if name.startswith(("killed", "stopped"))])
def test_a_process_that_the_others_gave_up_is_named_by_the_logs_alone(name: str) -> None:
    truth = truth_of(name, RAS)
    findings = [finding for finding in topodiag.logs([RAS / name / "logs"]).findings if finding.id == "JOB006"]
    assert [finding.where.ranks for finding in findings] == [tuple(each["rank"] for each in truth["guilty"])]


@needs_ras
def test_an_init_that_waits_is_told_where_ras_can_say_it() -> None:
    findings = topodiag.diagnose([RAS / "init_rank_missing-2.29.7" / "ras"]).findings
    assert [(finding.id, finding.severity) for finding in findings] == [("JOB001", Severity.ERROR)]
    with pytest.raises(InputError, match="empty"):  # 2.26 closes the connection: no answer is no health
        topodiag.diagnose([RAS / "init_rank_missing-2.26.6" / "ras"])
