"""Step times among the evidence: alone, between NCCL's lines, in packed logs, beside an error of the job."""

import gzip
import io
from pathlib import Path

import pytest

from tests.evidence.layout.test_job_file import dump
from tests.evidence.live.test_step_times import megatron
from topodiag.app.diagnose import diagnose
from topodiag.app.logs import logs
from topodiag.evidence.kinds import Kind
from topodiag.model.errors import InputError
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
