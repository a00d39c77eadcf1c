"""Step times and the Inspector's records among the evidence of jobs; what is read leaves memory."""

import gc
import gzip
import io
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.checks import jobs
from tests.evidence.layout.test_job_file import dump
from tests.evidence.live.test_step_times import megatron
from tests.scanned import node_at
from topodiag.app.case.collecting import OBJECTS, few_collections
from topodiag.app.case.inspector import ALONE, with_inspection
from topodiag.app.diagnose import diagnose
from topodiag.app.logs import logs
from topodiag.app.scan import scan
from topodiag.evidence.draft import NodeDraft
from topodiag.evidence.kinds import Kind
from topodiag.model.errors import InputError
from topodiag.model.inspector import Inspection, InspectorCommunicator, InspectorMember
from topodiag.model.job import Job
from topodiag.model.provenance import Origin
from topodiag.nccl.search import attempt, search
from topodiag.nccl.search.searched import first_system
from topodiag.nccl.settings import read_settings
from topodiag.nccl.topo.detect import tree_of
from topodiag.report.job.json import job_facts

LOG = (
    "n{host}:{pid}:{pid} [0] NCCL INFO ncclCommInitRank comm 0x1 rank {rank} nranks 2 cudaDev 0 nvmlDev 0 busId 1000"
    " commId 0x77 - Init COMPLETE\n"
)


def write(folder: Path, **texts: str) -> list[str]:
    for name, text in texts.items():
        (folder / f"{name}.log").write_text(text)
    return [str(folder / f"{name}.log") for name in texts]


def nccl() -> str:
    return "".join(LOG.format(host=rank, pid=100 + rank, rank=rank) for rank in (0, 1))


def test_a_log_of_steps_alone_is_a_job_of_unknown_state(tmp_path: Path) -> None:
    paths = write(tmp_path, train=megatron(range(1, 40)))
    result = logs(paths)
    assert [(file.path, file.kind, file.records) for file in result.inputs] == [(paths[0], Kind.STEPS.value, 1)]
    assert len(result.jobs[0].steps[0].steps) == 39
    assert not result.findings
    verdict = diagnose(paths).verdict
    assert (verdict.state.value, verdict.causes) == ("unknown", ())
    assert "12.9 s a step" in verdict.headline


def test_what_redraws_itself_is_one_line_of_its_file(tmp_path: Path) -> None:
    redrawn = "\r".join(f"loading {part} of 9" for part in range(9))
    [series] = logs(write(tmp_path, train=f"{redrawn}\n{megatron(range(1, 40))}")).jobs[0].steps
    [plain] = logs(write(tmp_path, train=f"loaded\n{megatron(range(1, 40))}")).jobs[0].steps
    assert [step.origin.line for step in series.steps if step.origin] == [
        step.origin.line for step in plain.steps if step.origin
    ]


def test_steps_between_lines_of_nccl_are_of_that_job(tmp_path: Path) -> None:
    (job,) = logs(write(tmp_path, both=nccl() + megatron(range(1, 40)))).jobs
    assert (job.world_size, len(job.steps)) == (2, 1)


def test_a_log_of_its_own_beside_nccls_is_of_the_same_job(tmp_path: Path) -> None:
    (job,) = logs(write(tmp_path, nccl=nccl(), train=megatron(range(1, 40)))).jobs
    assert (job.world_size, len(job.steps)) == (2, 1)


def test_a_packed_log_shows_its_steps_behind_nccls_lines(tmp_path: Path) -> None:
    path = tmp_path / "rank1.log.gz"
    path.write_bytes(gzip.compress((nccl() * 2000 + megatron(range(1, 40))).encode()))
    (job,) = logs([str(path)]).jobs
    assert len(job.steps[0].steps) == 39


def test_an_error_between_steps_is_found_still(tmp_path: Path) -> None:
    error = (
        "[rank0]: torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:2023, remote process exited\n"
    )
    many = megatron(range(1, 400))
    result = logs(write(tmp_path, train=many + error + many))
    assert result.jobs[0].steps
    assert result.jobs[0].events


def test_the_arguments_of_a_log_are_of_its_job(tmp_path: Path) -> None:
    (job,) = logs(write(tmp_path, both=nccl() + dump(world_size="2", tensor_model_parallel_size="2"))).jobs
    assert job.training.sizes["tp"] == 2


def test_the_document_and_the_table_have_the_steps(tmp_path: Path) -> None:
    from topodiag.api.results import Diagnosis  # noqa: PLC0415 - pandas

    result = logs(write(tmp_path, train=megatron(range(1, 40))))
    (pace,) = job_facts(result.jobs[0])["steps"]
    assert (pace["first"], pace["last"], pace["lines"], pace["unit"]) == (1, 39, 39, "s")
    table = Diagnosis(result).table("steps")
    assert (len(table), table["work"].iloc[0], table["line"].iloc[4]) == (39, 128, 5)


def test_standard_input_is_read_once_and_an_error_in_it_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    error = (
        "[rank0]: torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:2023, remote process exited\n"
    )
    # Neither the first nor the last bytes show it.
    text = megatron(range(1, 300)) + error + megatron(range(300, 600))
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    result = logs(["-"])
    assert len(result.jobs[0].steps[0].steps) == 599
    assert result.jobs[0].events


def test_one_step_alone_is_a_text_of_no_kind(tmp_path: Path) -> None:
    with pytest.raises(InputError):
        logs(write(tmp_path, train=megatron(range(1, 2))))


def test_times_since_the_begin_of_an_epoch_are_no_steps_but_work(tmp_path: Path) -> None:
    lines = [f"Epoch: 1\tBatch: {200 * at}/6000\tTime: {117.3 * at:.4f}\tLoss: 0.0{20 - at}" for at in range(1, 15)]
    (tmp_path / "workerlog.0").write_text("\n".join(lines) + "\n")
    (tmp_path / "workerlog.1").write_text("I0518 10:15:04.008893 1940 context.cc:74] init context nranks: 2\n")
    verdict = diagnose([str(tmp_path)]).verdict
    assert (verdict.state.value, verdict.causes) == ("unknown", ())


@pytest.mark.parametrize(("total", "cut"), [(100, True), (39, False)])
def test_a_run_whose_last_step_is_below_its_total_is_said_to_be_cut(tmp_path: Path, total: int, cut: bool) -> None:
    steps = "".join(
        f"step: {step}/{total} | loss: 2.1 | elapsed time per iteration (ms): 410.1\n" for step in range(1, 40)
    )
    verdict = diagnose(write(tmp_path, train=steps)).verdict
    assert ("its log ends at step 39 of 100, and does not say why" in verdict.headline) == cut
    assert any(step.command.startswith("topodiag diagnose") for step in verdict.next_evidence) == cut


# --- records of NCCL's Inspector beside the jobs that they are of


def comm(number: int, *pids: int, host: str = "n0") -> InspectorCommunicator:
    members = {at: InspectorMember(at, host, pid) for at, pid in enumerate(pids)}
    return InspectorCommunicator(number, f"c{number}", len(pids), 1, members)


def logged(comm_id: int) -> Job:
    job = jobs.job(1)
    return replace(
        job, communicators=tuple(replace(communicator, comm_id=comm_id) for communicator in job.communicators)
    )


def hashes(job: Job) -> set[int]:
    return {communicator.hash for communicator in job.inspection.communicators} if job.inspection is not None else set()


def test_records_of_two_jobs_are_those_of_each() -> None:
    first, second = logged(0xA), logged(0xB)
    inspection = Inspection((comm(0xA, 1, 2), comm(0xB, 11, 12), comm(3, 2), comm(4, 12)))
    runs = with_inspection((first, second), inspection)
    assert [hashes(job) for job in runs] == [{0xA, 3}, {0xB, 4}]


def test_what_is_of_no_job_of_the_logs_is_a_job_of_its_own() -> None:
    runs = with_inspection((logged(0xA),), Inspection((comm(0xA, 1, 2), comm(7, 31, 32))))
    assert [(job.name, hashes(job)) for job in runs][1] == (ALONE, {7})
    assert hashes(runs[0]) == {0xA}


def test_records_without_a_log_are_jobs_apart_where_their_groups_share_no_process() -> None:
    runs = with_inspection((), Inspection((comm(1, 1, 2), comm(2, 3, 4), comm(3, 2, 5))))
    assert [(job.name, hashes(job)) for job in runs] == [(ALONE, {1, 3}), (f"{ALONE} 2", {2})]


@given(st.lists(st.lists(st.integers(0, 30), min_size=1, max_size=4, unique=True), max_size=12))
def test_the_order_of_communicators_splits_no_job(groups: list[list[int]]) -> None:
    communicators = [comm(0xA + 100 * at, *pids) for at, pids in enumerate(groups)]
    shuffled = sorted(communicators, key=lambda communicator: (communicator.hash * 7919) % 31)
    one = with_inspection((logged(0xA),), Inspection(tuple(communicators)))
    other = with_inspection((logged(0xA),), Inspection(tuple(shuffled)))
    assert [hashes(job) for job in one] == [hashes(job) for job in other]


# --- what is read and judged leaves memory when nobody holds it, without a search for cycles, which are seldom


@contextmanager
def no_search() -> Iterator[None]:
    """Python searches for no garbage inside, and afterwards where it did before."""
    before = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if before:
            gc.enable()


def test_searches_are_seldom_inside_and_as_before_afterwards() -> None:
    before = gc.get_threshold()
    with few_collections():
        assert gc.get_threshold()[0] >= OBJECTS
    assert gc.get_threshold() == before


def test_a_draft_is_gone_with_its_last_user() -> None:
    draft = NodeDraft()
    gpu = draft.gpu(index=0, bus_id="00000000:1B:00.0")
    gpu.child("nvlink", 4).offer("speed", 26.562, Origin("made"))
    draft.gpu(bus_id="00000000:1B:00.0", uuid="GPU-made").absorb(draft.gpu(index=1))
    draft.pair("smi", gpu, draft.nic(rdma="mlx5_0"), "PIX", Origin("made"))
    gone = weakref.ref(draft)
    with no_search():
        del draft, gpu
        assert gone() is None


def test_a_scan_leaves_nothing_to_search_for() -> None:
    scan(["fixture:dgx-h100-gpu3-12of18-nvlink"])  # what is kept between runs is there
    gc.freeze()  # what other tests made: seconds to search, and nothing of this scan
    with no_search():
        scan(["fixture:dgx-h100-gpu3-12of18-nvlink"])
        assert gc.collect() < 500  # the draft of a node alone is thousands


def test_attempts_of_nccls_search_are_gone_when_they_end(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[weakref.ref[object]] = []

    class Watched(attempt._Attempt):
        __slots__ = ("__weakref__",)

        def __init__(self, *args: object) -> None:
            super().__init__(*args)  # type: ignore[arg-type]
            made.append(weakref.ref(self))

    monkeypatch.setattr(attempt, "_Attempt", Watched)
    settings = read_settings({}, minor=28)
    system = first_system(tree_of(node_at("fixture:hgx-a100")).tree, 8, minor=28, settings=settings)
    with no_search():
        search.search_graphs(system, settings)
        assert made
        assert all(each() is None for each in made)
