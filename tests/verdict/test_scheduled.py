"""What a scheduler says of nodes counts for those on which the job runs, and for no other; what an MPI says of its node
in passing, where no job works on below it."""

import json
from pathlib import Path

import pytest

from fixtures.whole.case import nccl_start, text
from tests.tables import examples
from topodiag.api import diagnose
from topodiag.model.verdict import State

HOSTS = ["gpu01", "gpu02", "gpu03", "gpu04"]
STEPS = [f"step {step} loss {4 - step / 900:.3f} 410 ms/step" for step in range(300)]
WAITED = [
    f"[rank{rank}]:[E407 11:51:0{rank % 10}.400 ProcessGroupNCCL.cpp:616] [Rank {rank}] Watchdog caught collective"
    " operation timeout: WorkNCCL(SeqNum=8142, OpType=ALLREDUCE, NumelIn=40960, NumelOut=40960, Timeout(ms)=600000)"
    f" ran for {600031 + rank} milliseconds before timing out."
    for rank in range(32)
    if rank // 8 != 2
]
SINFO = """\
PARTITION AVAIL  TIMELIMIT  NODES  STATE NODELIST
train*       up 7-00:00:00      1 {state:>6} gpu03
train*       up 7-00:00:00      3  alloc gpu[01-02,04]
debug        up    1:00:00      1  down* gpu09
"""


def node(name: str, state: str, reason: str) -> str:
    why = f"   Reason={reason} [slurm@2026-04-07T11:41:30]\n" if reason else ""
    return (
        f"NodeName={name} Arch=x86_64 CoresPerSocket=48\n   Gres=gpu:h100:8(S:0-1)\n"
        f"   State={state} ThreadsPerCore=2 TmpDisk=0 Weight=1\n   Partitions=train\n{why}\n"
    )


@examples("waits", "sinfo", "nodes", "first")
def test_a_node_that_is_held_leads_where_the_job_runs_on_it(
    tmp_path: Path, waits: bool | None, sinfo: str | None, nodes: list[list[str]] | None, first: list[str] | None
) -> None:
    """`sinfo` with this state of gpu03, or `scontrol show node` of `nodes`: the name, the state and the reason."""
    listed = SINFO.format(state=sinfo) if sinfo else "".join(node(*each) for each in nodes or ())
    tmp_path.joinpath("train.log").write_text(text(nccl_start(HOSTS, 8), iter(STEPS), iter(WAITED if waits else [])))
    tmp_path.joinpath("nodes.txt").write_text(listed)
    answer = diagnose(str(tmp_path))
    causes = [[cause.finding.id, *cause.finding.where.nodes] for cause in answer.verdict.causes]
    assert causes[:1] == ([first] if first else [])
    facts = [machine for machine in json.loads(answer.to_json())["facts"]["nodes"] if machine["scheduled"]]
    assert facts[0]["scheduled"][0]["state"]


LOST = [
    f"{host}:91{rank:02d}:93{rank:02d} [{rank}] NCCL WARN"
    " socketProgress: Connection closed by remote peer gpu03<41000>\n"
    for host in ("gpu01", "gpu02", "gpu04")
    for rank in range(8)
]


@examples("more", "nodes")
def test_a_node_that_only_its_peers_name_is_of_the_job(tmp_path: Path, more: str, nodes: list[tuple[str, ...]]) -> None:
    (tmp_path / "job.log").write_text("".join(LOST) + more)
    (tmp_path / "sinfo.txt").write_text(SINFO.format(state="down*"))
    down = [finding for finding in diagnose([str(tmp_path)]).findings if "scheduler" in finding.message]
    assert [finding.where.nodes for finding in down] == nodes


NO_PORT = (
    "WARNING: There is at least non-excluded one OpenFabrics device found,\n"
    "but there are no active ports detected (or Open MPI was unable to use them)."
)


@pytest.mark.parametrize(
    ("lines", "state", "first"),
    [
        ([NO_PORT, *STEPS], State.UNKNOWN, []),
        ([*STEPS, NO_PORT], State.AT_RISK, ["NIC001"]),
        ([NO_PORT, *STEPS[:1]], State.AT_RISK, ["NIC001"]),
    ],
    ids=["the job works on below", "below the work", "one line that a buffer held"],
)
def test_what_an_mpi_says_of_its_ports_in_passing_counts_where_no_job_works_on(
    tmp_path: Path, lines: list[str], state: State, first: list[str]
) -> None:
    tmp_path.joinpath("train.log").write_text("\n".join([*lines, ""]))
    answer = diagnose(str(tmp_path)).verdict
    assert (answer.state, [cause.finding.id for cause in answer.causes][:1]) == (state, first)
