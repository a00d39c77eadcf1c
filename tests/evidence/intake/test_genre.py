"""Source text, lists of changes and handbooks name faults that nobody met; output that quotes them is evidence."""

from pathlib import Path

import pytest

from tests.pasted import loud
from tests.tables import examples, texts
from topodiag.api import diagnose
from topodiag.evidence.intake.genre import program_text
from topodiag.model.errors import TopodiagError

TEXTS = texts(__file__)
PYTHON = TEXTS["python"]
GO = TEXTS["go"]
CUDA = TEXTS["cuda"]
CHANGES = TEXTS["changes"]
HANDBOOK = "".join(
    f"# Chapter {number}\n\n"
    + "".join(
        f"When a GPU has fallen off bus {number}.{bus}, dmesg shows Xid 79 and the node has to be drained and booted.\n"
        for bus in range(6)
    )
    + "```\ntorch.OutOfMemoryError: CUDA out of memory.\n```\n" * 2
    + "".join(f"- step {step} of chapter {number}\n" for step in range(4))
    for number in range(10)
)


@pytest.mark.parametrize(
    ("text", "what"),
    [(PYTHON, "the source of a program"), (GO, "the source of a program"), (CUDA, "the source of a program"),
     (CHANGES, "a list of changes"), (HANDBOOK, "a handbook")],
    ids=["python", "go", "cuda", "changes", "handbook"],
)  # fmt: skip
def test_faults_that_source_and_documents_name_have_not_happened(tmp_path: Path, text: str, what: str) -> None:
    assert program_text(text) == what
    path = tmp_path / "text"
    path.write_text(text)
    with pytest.raises(TopodiagError, match="it is source code or documentation"):
        diagnose(str(path))


def test_source_beside_a_log_is_left_aside_and_said_to_be(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(PYTHON)
    (tmp_path / "dmesg.txt").write_text("[  12.345678] NVRM: Xid (PCI:0000:01:00): 79, GPU has fallen off the bus.\n")
    diagnosis = diagnose(str(tmp_path))
    assert {finding.id for finding in diagnosis.findings} == {"GPU001"}
    assert "train.py" in diagnosis.to_json()


COMMIT = TEXTS["commit"]


@examples("text")
def test_what_changed_in_releases_and_commits_is_a_list_of_changes(text: str) -> None:
    assert program_text(text) == "a list of changes"


def test_commits_and_releases_above_the_output_of_a_job_are_part_of_it(tmp_path: Path) -> None:
    ran = "step: loss 2.5\n" * 60 + OOM
    for shown in (COMMIT * 3, "- torch\n2.19.3\n2.19.4\n2.20.1\n"):
        assert program_text(shown + ran) == ""
    assert loud(tmp_path, COMMIT.replace("Segmentation fault (core dumped)", "no more") * 3 + ran) == ["JOB009"]


@examples("text")
def test_output_that_quotes_source_is_no_source(text: str) -> None:
    assert program_text(text) == ""


@pytest.mark.parametrize(("end", "what"), [("3.69", ""), ("seconds", "a handbook"), ("3.69125 seconds", "")])
def test_measurements_below_rulers_are_no_sentences(end: str, what: str) -> None:
    part = "".join(f"Time {{0}}.{number} of the potential of all boundaries: {end}\n" for number in range(6))
    part += "Applied Volts: {0:02d}\n----------------\n"
    assert program_text("".join(map(part.format, range(20)))) == what


def test_a_sentence_that_ranks_repeat_is_no_prose() -> None:
    said = "[node-a][[10389,1],0][proc.c:266] Unable to find a reachable pairing between local and remote interfaces\n"
    parts = "".join(f"Reading part {part}\n---------------\n  cells : {part}\n" for part in range(40))
    assert program_text(said * 130 + parts) == ""


@pytest.mark.parametrize(("below", "what"), [("", ""), ("\n", "a handbook")], ids=["lines of one box", "chapters"])
def test_a_box_of_settings_above_the_output_has_no_chapters(below: str, what: str) -> None:
    settings = "".join(f"# {name}: ella\n{below}" for name in "abcdefghij")
    tasks = "".join(f"Skipping Task {task}: it was done by the run before this one.\n" for task in range(99))
    assert program_text(f"{'#' * 60}\n{settings}{'#' * 60}\n\n{tasks}") == what


CAT = (
    "{0} cat serve.py | head -4\nfrom vllm import LLM\nimport torch\nimport os\nos.environ['A'] = '1'\n"
    "{0} python serve.py\n"
)
OOM = "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.63 GiB (GPU 0; 44.56 GiB total capacity)\n"


@pytest.mark.parametrize("prompt", ["$", "ops@n1:~$", "[root@n1 ~]#", "(venv) ops@n1:/src$", "root@n1:/src#", "n1:~$"])
def test_a_transcript_of_a_shell_is_what_its_commands_printed(tmp_path: Path, prompt: str) -> None:
    assert program_text(CAT.format(prompt) + OOM) == ""
    assert program_text("# what I ran\n\n" + CAT.format(prompt) + "INFO: starting\n") == ""
    assert loud(tmp_path, CAT.format(prompt) + OOM) == ["JOB009"]


@examples("end")
def test_source_above_the_error_with_which_it_ended_is_evidence(end: str) -> None:
    assert program_text(PYTHON + end) == ""
    assert program_text(GO + "\n" + end + "exit status 2\n") == ""


@examples("source")
def test_source_that_speaks_of_commands_and_errors_is_source(source: str) -> None:
    assert program_text(source) == "the source of a program"


def test_it_takes_time_in_proportion_to_the_text() -> None:
    assert program_text("import a\n" * 2 + "a" * 500_000) in ("", "the source of a program")
    assert program_text(("* " + " " * 20_000 + "\n") * 20) == ""
    slow = "import a\n" * 3 + "A=" * 200_000 + "\n" + ("$ " + "A=" * 500 + "\n") * 200
    assert program_text(slow) in ("", "the source of a program")


DUMP = TEXTS["dump"]


@examples("text")
def test_the_strings_of_a_library_have_not_happened(tmp_path: Path, text: str) -> None:
    (tmp_path / "libnccl.txt").write_text(text)
    with pytest.raises(TopodiagError, match="source code or documentation"):
        diagnose(str(tmp_path))


@examples("line")
def test_a_single_message_that_nobody_filled_accuses_nobody(tmp_path: Path, line: str) -> None:
    (tmp_path / "grep.txt").write_text(f"Binary file libnccl.so\n{line}\n")
    log = "n1:9:9 [0] NCCL INFO comm 0x1 rank {0} nranks 2 cudaDev {0} busId {1}b000 - Init COMPLETE\n"
    (tmp_path / "job.log").write_text(log.format(0, 1) + log.format(1, 2) + line + "\n")
    assert [finding.id for finding in diagnose(str(tmp_path)).findings if finding.severity.name != "INFO"] == []


def test_a_log_with_a_fault_beside_the_strings_keeps_its_fault(tmp_path: Path) -> None:
    (tmp_path / "libnccl.txt").write_text(DUMP)
    text = "Mismatched NCCL version detected : rank 0 version 22304 rank 1 version 21805\n"
    (tmp_path / "job.log").write_text(f"n1:9:9 [0] init.cc:900 NCCL WARN {text}")
    assert "JOB002" in [finding.id for finding in diagnose(str(tmp_path)).findings]


def test_a_box_around_each_of_many_errors_is_no_chapter() -> None:
    box = (
        "For more information please check the website of the program\n" + "-" * 60 + "\nPlease send what it prints.\n"
    )
    sentence = "The checkpoint file cannot be renamed, maybe the disk of this node is full by now.\n"
    assert program_text((box + sentence * 8) * 12) == ""
