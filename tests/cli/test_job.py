"""`--job FILE`: the job's own files say its layout and its model where no option does."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests import program
from tests.evidence.layout.test_job_file import CONFIG, DEEPSPEED, MEGATRON
from topodiag.api import diagnose

Asked = Callable[..., "tuple[int, str, str]"]
STEP = ("model", "step", "--nodes", "8", "--format", "json")


@pytest.fixture
def asked(tmp_path: Path) -> Asked:
    """Runs a command with a `--job` for each of these texts; its code, output and errors."""

    def run(command: Sequence[str], *texts: str, more: Sequence[str] = ()) -> tuple[int, str, str]:
        jobs: list[str] = []
        for number, text in enumerate(texts):
            path = tmp_path / f"job{number}"
            path.write_text(text)
            jobs += ["--job", str(path)]
        done = program.run(*command, *jobs, *more)
        return done.returncode, done.stdout, done.stderr

    return run


def test_the_step_is_that_of_the_script(asked: Asked) -> None:
    code, out, err = asked(STEP, MEGATRON)
    inputs = json.loads(out)["inputs"]
    assert (code, inputs["tp"], inputs["pp"], inputs["layers"], inputs["global_batch"]) == (0, 4, 2, 32, 1024)
    assert "tp 4 (line 17)" in err


def test_an_option_goes_before_the_file(asked: Asked) -> None:
    _, out, err = asked(STEP, MEGATRON, more=("--tp", "8", "--layers", "64", "--quiet"))
    inputs = json.loads(out)["inputs"]
    assert (inputs["tp"], inputs["layers"], inputs["hidden"]) == (8, 64, 4096)
    assert not err


def test_two_files_are_one_job(asked: Asked) -> None:
    _, out, err = asked(STEP, DEEPSPEED, CONFIG)
    inputs = json.loads(out)["inputs"]
    assert (inputs["tp"], inputs["zero"], inputs["layers"]) == (4, 3, 32)
    assert "size of the model is not" not in err


COMMANDS: tuple[Sequence[str], ...] = (
    STEP,
    ("diagnose", "fixture:nic-missing"),
    ("logs", "fixture:nic-missing"),
    ("place", "audit", "--nodes", "4"),
    ("place", "solve", "--nodes", "4"),
)
BAD = {
    "nothing of a job": ("echo hello\n", "declares no parallel sizes"),
    "a size that is none": ("tp: 0\npp: 1\n", "tp is 0"),
    "two runs": ("run --tensor-model-parallel-size 8\nrun --tensor-model-parallel-size 4\n", "says tp twice, 8 and 4"),
}


@pytest.mark.parametrize("bad", BAD)
def test_a_file_that_declares_no_job_is_one_line_and_2(asked: Asked, bad: str) -> None:
    text, says = BAD[bad]
    code, out, err = asked(COMMANDS[1], text)
    assert (code, out) == (2, "")
    assert says in err.splitlines()[0]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_that_takes_a_layout_takes_the_file(asked: Asked, command: Sequence[str]) -> None:
    code, _, err = asked(command, "tp: 4\npp: 2\n")
    assert code < 2, err
    assert "tp 4 (line 1), pp 2 (line 2)" in err


def test_two_files_that_disagree_are_refused(asked: Asked) -> None:
    code, _, err = asked(STEP, "tp: 8\npp: 1\n", "tp: 4\npp: 1\n")
    assert code == 2
    assert "says tp 4, and another --job says 8" in err


def test_a_job_that_serves_has_no_share_of_a_training_step(asked: Asked) -> None:
    _, trained, _ = asked(("diagnose", "fixture:nic-missing"), "tp: 16\npp: 1\n")
    _, served, err = asked(("diagnose", "fixture:nic-missing"), "vllm serve m -tp 16\n")
    assert "of a step" in trained
    assert "of a step" not in served
    assert "nothing is trained" in err


def test_python_takes_the_same_files(tmp_path: Path) -> None:
    path = tmp_path / "train.sh"
    path.write_text(MEGATRON)
    priced = diagnose("fixture:nic-missing", job=path, tp=16, pp=1).result.verdict
    assert priced is not None
    assert priced.causes[0].price.step_share is not None
    assert "70B" not in priced.causes[0].price.step_said


def test_the_ranks_of_the_job_are_the_nodes_where_nothing_names_them(asked: Asked) -> None:
    script = "torchrun --nnodes 4 --nproc-per-node 8 pretrain.py --tensor-model-parallel-size 8\n"
    assert "32 ranks on 4 nodes" in asked(("place", "audit"), script)[1]
    assert "32 GPUs, tp8" in asked(("model", "step"), script)[1]
    assert "64 GPUs, tp8" in asked(("model", "step"), script, more=("--nodes", "8"))[1]
    assert "16 ranks on 2 nodes" in asked(("place", "audit"), "vllm serve m -tp 8 -pp 2\n")[1]
    text = "deepspeed_config:\n  zero_stage: 3\nnum_processes: 16\n"
    assert "16 GPUs, tp1 cp1 dp16" in asked(("model", "step"), text)[1]


def test_a_server_is_placed_by_its_requests(asked: Asked) -> None:
    server, place = "vllm serve m -tp 8 -pp 2\n", ("place", "audit", "--nodes", "2", "--system", "dgx-h100")
    training = asked(place, "tp: 8\npp: 2\ndp: 1\n")[1]
    assert "per step" in training
    for more in ((), ("--rule", "cyclic"), ("-v",)):
        code, out, _ = asked(place, server, more=more)
        assert code == (1 if more == ("--rule", "cyclic") else 0)
        assert "of communication in a request" in out
        assert " step" not in out.replace("training steps", "")
    assert "in a request" in asked(("place", "solve", *place[2:]), server)[1]


def test_replicas_of_a_server_exchange_nothing(asked: Asked) -> None:
    out = asked(("place", "audit", "--nodes", "2"), "vllm serve m -tp 8 --data-parallel-size 2\n")[1]
    assert "\n  tp " in out
    assert "\n  dp " not in out


def test_a_server_has_no_step(asked: Asked) -> None:
    code, out, err = asked(("model", "step"), "vllm serve m -tp 8\n")
    assert (code, out) == (2, "")
    assert "--job starts a server" in err
