"""`topodiag diagnose` as users run it: one verdict, exit codes, JSON, and the files that apply a fix."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from topodiag.cli import cli
from topodiag.cli.errors import Outcome

SICK = "fixture:dgx-h100-gpu3-12of18-nvlink"


def run(*args: str) -> tuple[Result, int]:
    reached = Outcome()
    done = CliRunner().invoke(cli, ["diagnose", *args], obj=reached)
    return done, done.exit_code or reached.code


def test_the_first_command_of_the_help_is_diagnose() -> None:
    lines = CliRunner().invoke(cli, ["--help"]).stdout.splitlines()
    assert lines[lines.index("Commands:") + 1].split()[0] == "diagnose"


def test_the_json_has_the_keys_of_the_published_form() -> None:
    document = json.loads(run(SICK, "--format", "json")[0].stdout)
    assert document["verdict"]["state"] == "at_risk"
    [cause] = document["verdict"]["causes"]
    assert (cause["check"], cause["status"]) == ("NVL001", "established")
    assert set(cause) >= {
        "where", "mechanism", "cost", "predicted", "measured", "fix", "confirm", "evidence", "consequences",
        "contradicted_by",
    }  # fmt: skip
    assert set(cause["cost"]) == {
        "gbs_lost", "share", "step_share", "step_range", "communication_share", "step_said", "step_says",
        "step_agrees", "text",
    }  # fmt: skip
    assert set(document) >= {"inputs", "facts", "findings", "not_observed", "verdict", "identity", "timeline", "clocks"}
    assert {"unrelated", "ruled_out", "not_explained", "next_evidence"} <= set(document["verdict"])


def test_a_short_text_on_standard_input_is_judged_as_from_a_file(tmp_path: Path) -> None:
    text = "NCCL version 2.28.3 compiled with CUDA 12.9\nmlx5_2 link_downed 0\nmlx5_7 link_downed 5\n"
    file = tmp_path / "paste.txt"
    file.write_text(text)
    answers = []
    for given, name in ((str(file), str(file)), ("-", "<stdin>")):
        done = CliRunner().invoke(cli, ["diagnose", given, "--width", "200"], input=text, obj=Outcome())
        answers.append((done.exception, done.output.replace(name, "TEXT")))
    assert answers[0] == answers[1]
    assert answers[1][0] is None


def run_of(pid: int, *after: str) -> str:
    """A job of two ranks on one node that comes up and takes ten steps, and what it prints last."""
    lines = [f"n0:{pid}:{pid} [0] NCCL INFO NCCL version 2.27.7+cuda12.8"]
    for rank in range(2):
        head = f"n0:{pid + rank}:{pid + 9 + rank} [{rank}] NCCL INFO "
        lines += [
            f"{head}Channel 00/0 : {rank}[{rank}] -> {1 - rank}[{1 - rank}] via P2P/CUMEM",
            f"{head}ncclCommInitRankConfig comm 0x{pid} rank {rank} nranks 2 cudaDev {rank} nvmlDev {rank}"
            f" busId {rank + 1}000 commId 0xab{pid} - Init COMPLETE",
        ]
    steps = [f"iteration {at}/ 100 | elapsed time per iteration (ms): 512.{at} | loss: 2.1" for at in range(10)]
    return "\n".join((*lines, *steps, *after, ""))


DIED = "n0:1001:1010 [1] misc/ibvwrap.cc:94 NCCL WARN Call to ibv_reg_mr failed with error Cannot allocate memory"


@pytest.mark.parametrize(
    ("ends", "options", "words", "code"),
    [
        (([DIED], []), [], "HEALTHY  the last of 2 runs: no fault in what was seen of 1 job of 2 ranks; an earlier", 0),
        (([DIED], []), ["--fail-on", "info"], "an earlier run failed (unrelated)", 1),
        (([], []), [], "HEALTHY  no fault in what was seen of 2 jobs of 4 ranks", 0),
        (([], [DIED.replace("100", "300").replace("1010", "3010")]), [], "FAILED", 1),
    ],
)
def test_a_last_run_that_is_well_says_how_an_earlier_run_ended(
    tmp_path: Path, ends: tuple[list[str], list[str]], options: list[str], words: str, code: int
) -> None:
    log = tmp_path / "job.log"
    log.write_text(run_of(1000, *ends[0]) + run_of(3000, *ends[1]), encoding="utf-8")
    done, reached = run("--width", "200", *options, str(log))
    assert words in done.stdout
    assert reached == code
