"""Jobs that real NCCL logged are rebuilt exactly as their truth says; skipped where the corpus does not stand."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.scanned import logs_at
from topodiag.model.job import Job

JOBS = Path(__file__).resolve().parents[4] / "shared" / "corpus" / "jobs"
NAMES = sorted(path.parent.name for path in JOBS.glob("*/truth.json"))

pytestmark = pytest.mark.skipif(not NAMES, reason=f"the corpus of jobs is not at {JOBS}")


def truth(name: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((JOBS / name / "truth.json").read_text(encoding="utf-8"))
    return document


def job(name: str) -> Job:
    (run,) = logs_at(str(JOBS / name / "logs")).jobs
    return run


def ended_well(name: str) -> bool:
    return bool(truth(name)["ended"] == "ok")


@pytest.mark.parametrize("name", NAMES)
def test_a_job_of_the_corpus_is_rebuilt_as_it_was(name: str) -> None:
    wanted, run = truth(name), job(name)
    counted = wanted["counted"]
    assert set(run.hosts) <= set(wanted["hosts"])
    if wanted["nccl_version"]:
        assert list(run.nccl_versions) == wanted["nccl_version"]
    if counted["init_start"]:
        assert sorted(run.hosts) == sorted(wanted["hosts"])
        assert run.world_size == wanted["world_size"]
        there = {(rank.rank, rank.host, rank.bus_id) for rank in run.ranks}
        known = {(rank["rank"], rank["host"], rank["bus_id"]) for rank in wanted["ranks"]}
        assert there == known or not ended_well(name)
        assert {(rank, host) for rank, host, _ in there} <= {(r["rank"], r["host"]) for r in wanted["ranks"]}
    else:
        assert run.ranks == ()
        assert len(run.unplaced) == len(run.processes)
    assert sum(int(communicator.started.sum()) for communicator in run.communicators) == counted["init_start"]
    assert sum(int(communicator.completed.sum()) for communicator in run.communicators) == counted["init_complete"]
    if ended_well(name):
        assert groups(run) == Counter(
            (tuple(communicator["ranks"]), communicator.get("nodes", -1)) for communicator in wanted["communicators"]
        )  # fmt: skip
    else:
        assert {tuple(communicator.known.tolist()) for communicator in run.communicators} <= {
            tuple(communicator["ranks"]) for communicator in wanted["communicators"]
        }


def groups(run: Job) -> Counter[tuple[tuple[int, ...], int]]:
    # The truth counts hosts. NCCL's own count differs for NVLink cliques, and where P2P between sockets is off.
    return Counter((tuple(communicator.ranks.tolist()), len(communicator.hosts)) for communicator in run.communicators)


@pytest.mark.parametrize("name", NAMES)
def test_what_the_lines_count_is_what_the_communicators_hold(name: str) -> None:
    counted, run = truth(name)["counted"], job(name)
    lines: Counter[str] = Counter()
    for communicator in run.communicators:
        lines.update(communicator.transports)
    loose = run.connections.comm < 0
    for i in np.flatnonzero(loose).tolist():
        lines[run.connections.label(i)] += int(run.connections.count[i])
    assert lines == Counter(counted["transports"])
    assert not loose.any(), "every line of a connection finds its communicator"
    channels: Counter[str] = Counter()
    for communicator in run.communicators:
        common, own = communicator.channels, communicator.channels_by_rank
        for rank in range(communicator.nranks):
            one = own.get(rank, common)
            if communicator.completed[rank]:
                numbers = (one.coll, one.collnet, one.nvls, one.p2p, one.per_peer)
                channels[" ".join(str(max(number, 0)) for number in numbers)] += 1
    assert channels == Counter(counted["coll_collnet_nvls_p2p_p2pperpeer"])


@pytest.mark.parametrize("name", NAMES)
def test_graphs_and_choices_of_rank_0_are_those_printed(name: str) -> None:
    counted, run = truth(name)["counted"], job(name)
    first = [communicator for communicator in run.communicators if communicator.nranks and communicator.ranks[0] == 0]
    host = run.ranks[0].host if run.ranks else ""
    patterns = [
        [str(g.pattern), str(g.cross_nic), str(g.channels), f"{g.bw_intra:.6f}", f"{g.bw_inter:.6f}", g.type_intra,
         g.type_inter, str(int(g.same_channels))]
        for communicator in first
        for g in communicator.graphs.get(host, ())
    ]  # fmt: skip
    assert patterns == counted["patterns_rank0"]
    graphs = [graph for communicator in run.communicators for own in communicator.graphs.values() for graph in own]
    assert all(len(graph.orders) == graph.channels for graph in graphs)
    systems = [system for communicator in run.communicators for system in communicator.systems.values()]
    devices = [device for system in systems for device in system.devices.values()]
    assert all(device.parent or device.kind in ("CPU", "NVS") for device in devices)
    choices = Counter(
        (choice.collective, str(choice.bytes), choice.algorithm, choice.protocol)
        for communicator in first
        for choice in communicator.choices
        for _ in range(choice.count)
    )
    assert choices == Counter(map(tuple, counted["choices_rank0"])) or not counted["choices_rank0"]


@pytest.mark.parametrize("name", NAMES)
def test_the_nics_of_a_host_are_those_its_processes_list(name: str) -> None:
    wanted, run = truth(name)["nics_per_host"], job(name)
    for host, nics in wanted.items():
        if nics:
            for process in run.processes:
                if process.host == host and process.hcas:
                    assert [hca.name for hca in process.hcas] == nics
