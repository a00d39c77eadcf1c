"""NET006 and NET007: a search that collapsed, and nodes that differ."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.checks import jobs
from tests.checks.wanted import Wanted, expect, shown
from tests.tables import examples
from topodiag.checks.network.channels import SearchCollapsed, judge_narrow
from topodiag.checks.network.nodes_differ import NodesDiffer
from topodiag.model.finding import Finding, Outcome, Status
from topodiag.model.job import Channels, Communicator, Hca, Job, Process
from topodiag.model.nccl_view import Graph, NcclSystem


def ring(**changes: object) -> Callable[[int, tuple[Graph, ...]], tuple[Graph, ...]]:
    return lambda host, graphs: (jobs.graph(**changes),)


def without_graphs(communicator: Communicator) -> Communicator:
    return replace(communicator, graphs={})


def without_gdr(rank: int, host: int, process: Process) -> Process:
    return replace(process, hcas=tuple(replace(hca, gdr=False) for hca in process.hcas))


@examples("given", "wanted")
def test_a_search_that_collapsed(given: jobs.Given, wanted: Wanted) -> None:
    hooks = {"ring": ring, "without_graphs": without_graphs, "without_gdr": without_gdr}
    assert shown(SearchCollapsed().judge(jobs.of_row(given, **hooks)), wanted) == wanted


def on_second(**changes: object) -> Callable[[int, int, Process], Process]:
    def hook(rank: int, host: int, process: Process) -> Process:
        def changed(hca: Hca) -> Hca:
            return replace(hca, **changes)  # type: ignore[arg-type]

        return replace(process, hcas=tuple(map(changed, process.hcas))) if host == 1 else process

    return hook


def slow_nic(rank: int, host: int, process: Process) -> Process:
    slow = jobs.hca(0, speed_mbps=100_000)
    return replace(process, hcas=(slow, *process.hcas[1:])) if host == 1 else process


def sockets_on_second(rank: int, host: int, process: Process) -> Process:
    return replace(process, network="Socket", hcas=()) if host == 1 else process


def silent(rank: int, host: int, process: Process) -> Process:
    return replace(process, network="", hcas=())


def fewer_channels(communicator: Communicator) -> Communicator:
    return replace(communicator, channels_by_rank={3: Channels(8)})


@examples("given", "wanted")
def test_nodes_that_differ(given: jobs.Given, wanted: Wanted) -> None:
    hooks = {"on_second": on_second, "slow_nic": slow_nic, "sockets_on_second": sockets_on_second, "silent": silent}
    job = jobs.of_row(given, **hooks, fewer_channels=fewer_channels)
    assert shown(NodesDiffer().judge(job), wanted) == wanted


def lost_tree(version: str = "2.27.7", pattern: int = 1, **of_ring: object) -> Finding:
    note = jobs.message("topo note", f"Could not find a path for pattern {pattern}, falling back to simple order")
    rings = ring(**{"channels": 4, "bw_intra": 24.0, "bw_inter": 24.0, **of_ring})
    plain = jobs.job(messages=[note], graphs=rings, systems=lambda host, system: jobs.system(nvlink_gbs=0))
    (finding,) = SearchCollapsed().judge(replace(plain, nccl_versions=(version,))).findings
    return finding


@pytest.mark.parametrize(
    "finding", [lost_tree("2.24.3"), lost_tree("2.29.2"), lost_tree(pattern=4), lost_tree(bw_inter=0.1), lost_tree("")]
)
def test_the_cause_is_named_only_where_that_fault_of_nccl_explains_it(finding: Finding) -> None:
    assert "simple order" in finding.message
    assert not finding.settings


@examples("text", "told")
def test_sockets_that_met_nccls_own_ib_tell_of_two_networks_from_one_nodes_log(text: str, told: str) -> None:
    outcome = NodesDiffer().judge(jobs.job(1, events=[jobs.event("mismatch", text)]))
    if told:
        finding = expect(outcome, severity="ERROR")
        assert told in finding.message
    else:
        assert outcome.status is Status.NOT_APPLICABLE


# --- NET006 by a topology file that makes links of modern GPUs Gen3: told where a file was read, silent where none was

FILE = "/opt/topo/h200.xml"


def system(pci: float = 12.0, **changes: Any) -> NcclSystem:
    nccl_system = jobs.system(**changes)
    return replace(nccl_system, links=tuple(replace(x, gbs=pci) if x.kind == "PCI" else x for x in nccl_system.links))


def told(rank: int, host: int, process: Process) -> Process:
    return replace(process, settings={**process.settings, "NCCL_TOPO_FILE": jobs.given("NCCL_TOPO_FILE", FILE)})


def loaded(rank: int, host: int, process: Process) -> Process:
    line = jobs.message("topo file", f"Loading topology file {FILE}")
    return replace(process, messages=(*process.messages, line))


def made(hook: Any = told) -> Job:
    return jobs.job(process=hook)


def narrow_in(job: Job, seen: NcclSystem) -> list[Finding]:
    return list(judge_narrow(SearchCollapsed(), job, "n0", seen, jobs.graph()))


@pytest.mark.parametrize("hook", [told, loaded])
def test_a_file_by_which_hopper_has_gen3_links_is_named(hook: Any) -> None:
    (finding,) = narrow_in(made(hook), system())
    assert FILE in finding.message
    assert "12 GB/s" in finding.message
    assert finding.message.endswith(" 48")


def test_without_a_file_it_is_a_virtual_machine_or_a_slow_link() -> None:
    assert narrow_in(jobs.job(), system()) == []


@pytest.mark.parametrize(
    "seen",
    [
        system(48.0), system(24.0), system(nvlink_gbs=240.0), system(nvlink_gbs=0.0), system(nic_gbs=12.5),
        system(nics=1), system(gpus=0),
    ],
    ids=["as built", "Gen4", "A100", "no NVLink", "slow NICs", "one NIC", "no GPU"],
)  # fmt: skip
def test_links_as_built_and_networks_that_need_no_more_are_silent(seen: NcclSystem) -> None:
    assert narrow_in(made(), seen) == []


def narrowed(job: Job) -> Outcome:
    """The job with such links in every system that it printed, and rings that fit them."""
    slow: dict[str, Any] = {"channels": 8, "bw_intra": 12.0, "bw_inter": 12.0}
    comms = tuple(
        replace(
            comm,
            systems={host: system() for host in comm.systems},
            graphs={host: tuple(replace(graph, **slow) for graph in graphs) for host, graphs in comm.graphs.items()},
        )
        for comm in job.communicators
    )
    return SearchCollapsed().judge(replace(job, communicators=comms))


def test_the_check_tells_it_once_for_all_nodes_with_what_is_lost() -> None:
    finding = expect(narrowed(made()), severity="WARNING", nodes=("n0", "n1"), gbs_lost=288.0)
    assert finding.settings == (("NCCL_TOPO_FILE", None),)
    assert FILE in finding.message


def test_the_same_figures_without_a_file_are_clean() -> None:
    assert narrowed(jobs.job()).status is Status.CLEAN
