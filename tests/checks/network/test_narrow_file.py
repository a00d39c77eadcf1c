"""NET006 by a topology file that makes links of modern GPUs Gen3: told where a file was read, silent where none was."""

from dataclasses import replace
from typing import Any

import pytest

from tests.checks import jobs
from topodiag.checks.network.channels import SearchCollapsed, narrow_file
from topodiag.model.finding import Outcome, Severity, Status
from topodiag.model.job import Job, Process
from topodiag.model.nccl_view import NcclSystem

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


@pytest.mark.parametrize("hook", [told, loaded])
def test_a_file_by_which_hopper_has_gen3_links_is_named(hook: Any) -> None:
    narrow = narrow_file(made(hook), system())
    assert (narrow.file, narrow.told_gbs, narrow.built_gbs) == (FILE, 12.0, 48.0)


def test_without_a_file_it_is_a_virtual_machine_or_a_slow_link() -> None:
    assert narrow_file(jobs.job(), system()) is None


@pytest.mark.parametrize(
    "seen",
    [
        system(48.0), system(24.0), system(nvlink_gbs=240.0), system(nvlink_gbs=0.0), system(nic_gbs=12.5),
        system(nics=1), system(gpus=0),
    ],
    ids=["as built", "Gen4", "A100", "no NVLink", "slow NICs", "one NIC", "no GPU"],
)  # fmt: skip
def test_links_as_built_and_networks_that_need_no_more_are_silent(seen: NcclSystem) -> None:
    assert narrow_file(made(), seen) is None


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
    (finding,) = narrowed(made()).findings
    assert finding.severity is Severity.WARNING
    assert finding.where.nodes == ("n0", "n1")
    assert finding.cost.gbs_lost == pytest.approx(288.0)
    assert finding.settings == (("NCCL_TOPO_FILE", None),)
    assert FILE in finding.message


def test_the_same_figures_without_a_file_are_clean() -> None:
    assert narrowed(jobs.job()).status is Status.CLEAN
