"""Texts of several jobs of a scheduler are told apart by the numbers in their names."""

from pathlib import Path

import pytest

from topodiag.api import diagnose
from topodiag.app.case.job_numbers import job_number
from topodiag.model.verdict import State

STEPS = "".join(f"step {step} loss {4 - step / 900:.3f} 410 ms/step\n" for step in range(1, 9))
FULL = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79 GiB of"
    " which 1.0 GiB is free.\n"
)
RANKS = "".join(
    f"n0:471{rank}:475{rank} [{rank}] NCCL INFO comm 0x471{rank} rank {rank} nranks 2 cudaDev {rank} busId c{rank}000"
    f" commId 0x47117 - Init {stage}\n"
    for stage in ("START", "COMPLETE")
    for rank in (0, 1)
)
LIMIT = "slurmstepd: error: *** JOB {} ON n1 CANCELLED AT 2025-09-17T12:07:11 DUE TO TIME LIMIT ***\n"
BEGAN = "nohup: ignoring input\nloading the model\n"
FELL = 'Traceback (most recent call last):\n  File "train.py", line 3, in <module>\n    main()\nKeyError: 1\n'


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("slurm-413047.out", "413047"),
        ("logs/slurm-413047_3.out", "413047"),
        ("slurm-12_3.out", "12"),
        ("train_1061335.err", "1061335"),
        ("1061335.stdout", "1061335"),
        ("train_1061335_n1.out", "1061335"),
        ("myjob_N2_n6.o1661168", "1661168"),
        ("run.e4711", "4711"),
        ("run.o4711-3", "4711"),
        ("slurm-413047-20250117.out", "413047"),
        ("train_20250117_193012.out", ""),
        ("nid001285.out", ""),
        ("rank_00001.out", ""),
        ("nccl.node1.12345.log", ""),
        ("worker-01000000-4711.out", ""),
        ("logs.tgz/run/slurm-413047.out.gz", "413047"),
        ("train.out", ""),
        ("libmpi.so.40500", ""),
    ],
)
def test_the_number_of_a_job_stands_in_the_names_that_a_scheduler_gives(name: str, number: str) -> None:
    assert job_number(name) == number


def jobs(folder: Path, texts: dict[str, str]) -> dict[str, State]:
    for name, text in texts.items():
        folder.joinpath(name).write_text(text, encoding="utf-8")
    verdict = diagnose(str(folder)).verdict
    return {job.name: job.state for job in verdict.jobs}


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (
            {"slurm-100001.out": STEPS + FULL, "slurm-100002.out": STEPS},
            {"job 100001": State.FAILED, "job 100002": State.UNKNOWN},
        ),
        (
            {"a_100001.err": FULL, "a_100001.out": STEPS, "a_100002.err": FELL, "a_100002.out": STEPS},
            {"job 100001": State.FAILED, "job 100002": State.FAILED},
        ),
        ({"a.o4711": FELL, "a.o4712": FELL}, {"job 4711": State.FAILED, "job 4712": State.FAILED}),
        ({"a_100001.out": STEPS, "a_100001.err": STEPS + FULL}, {"job": State.FAILED}),
        ({"slurm-100001.out": STEPS, "notes.log": STEPS + FULL}, {"job": State.FAILED}),
        ({"rank0.out": FELL, "rank1.out": FELL}, {"job": State.FAILED}),
        (
            {"slurm-100001.out": RANKS + STEPS, "slurm-100002.out": STEPS + FULL},
            {"job 100001": State.HEALTHY, "job 100002": State.FAILED},
        ),
        ({"slurm-100001.out": RANKS + STEPS, "errors.log": FULL}, {"job": State.FAILED}),
        (
            {
                "jet-25.log": STEPS + LIMIT.format(25),
                "jet-40.log": STEPS + FULL,
                "jet-44.log": STEPS + LIMIT.format(44),
            },
            {"job 25": State.UNKNOWN, "job": State.FAILED, "job 44": State.UNKNOWN},
        ),
        (
            {
                "slurm-100001.out": FULL + STEPS,
                "slurm-100002.out": STEPS + FULL,
                "slurm-100003.out": BEGAN + FELL + BEGAN,
            },
            {
                "job 100001": State.UNKNOWN,
                "job 100002": State.FAILED,
                "job 100003": State.UNKNOWN,
                "job 100003, an earlier launch": State.FAILED,
            },
        ),
    ],
    ids=[
        "one failed, one worked",
        "two texts a job",
        "texts in which nothing else stands",
        "one number is one job",
        "a text without a number",
        "texts of ranks",
        "one with ranks, and another that failed",
        "a text without a number, beside ranks",
        "numbers that Slurm says",
        "launches of each",
    ],
)
def test_each_number_is_a_job(tmp_path: Path, texts: dict[str, str], expected: dict[str, State]) -> None:
    assert jobs(tmp_path, texts) == expected
