"""Of which kind a file is, and which texts are documents, sources or notes."""

import bz2
import gzip
import json
import lzma
from pathlib import Path

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from tests.files import filed, laid
from tests.pasted import loud
from tests.tables import examples, texts
from topodiag.api import bench, diagnose
from topodiag.evidence import registry
from topodiag.evidence.intake.gather import gather
from topodiag.evidence.intake.genre import is_json, program_text
from topodiag.evidence.intake.kind_of_file import FileKind, kind_of_file
from topodiag.evidence.intake.log_plan import complaint
from topodiag.evidence.intake.one_file import HEAD_BYTES
from topodiag.evidence.intake.pieces import Piece
from topodiag.evidence.kinds import KINDS, Kind, command_for, source_words
from topodiag.model.errors import InputError, TopodiagError

RECORD = b"node1:11:12 [0] NCCL INFO Using network IB\n"
MATRIX = b"\tGPU0\tGPU1\nGPU0\t X \tNV18\nGPU1\tNV18\t X \n"
MAGIC = [
    gzip.compress(b"x")[:10], zstandard.compress(b"x")[:6], lzma.compress(b"x")[:12], bz2.compress(b"x")[:10],
    b"\xff\xfe", b"PK\x03\x04", b"PAR1", b"\x80\x04", b"{", b"<system ", bytes(257) + b"ustar",
]  # fmt: skip


def piece_of(seen: FileKind) -> Piece:
    return Piece("x", seen.kinds, sources=seen.sources, what=seen.what)


@pytest.mark.parametrize(
    ("head", "kind"),
    [
        (RECORD, Kind.NCCL_LOG),
        (bytes(5000) + RECORD * 5, Kind.NCCL_LOG),  # the hole that copytruncate leaves
        (RECORD * 3 + b"\0\0\0" + RECORD, Kind.NCCL_LOG),
        (RECORD.decode().encode("utf-16"), Kind.NCCL_LOG),
        (RECORD.decode().encode("utf-16-le"), Kind.NCCL_LOG),
        (b"\xef\xbb\xbf" + RECORD, Kind.NCCL_LOG),
        (RECORD.replace(b"\n", b"\r\n"), Kind.NCCL_LOG),
        (b"caf\xe9 \xff\xfe\n" * 10 + RECORD, Kind.NCCL_LOG),
        (b"\x7fELF" + bytes(64), Kind.BINARY),
        (bytes(range(32)) * 100, Kind.BINARY),
        (b" 2/20 [>....] - loss: 2.1" + b"\b" * 25, Kind.TEXT),
        (b"\x93NUMPY\1\0v\0" + bytes(range(256)) * 8, Kind.BINARY),
        (b"PAR1" + bytes(20), Kind.PARQUET),
        (gzip.compress(RECORD, mtime=0), Kind.NCCL_LOG),
        (gzip.compress(b"", mtime=0), Kind.EMPTY),
        (gzip.compress(bytes(257) + b"ustar" + bytes(300), mtime=0), Kind.ARCHIVE),
        (gzip.compress(b"\x7fELF" + bytes(64), mtime=0), Kind.BINARY),
        (zstandard.compress(RECORD), Kind.NCCL_LOG),
        (b"\x50\x2a\x4d\x18\x04\0\0\0\1\2\3\4" + zstandard.compress(RECORD), Kind.NCCL_LOG),
        (lzma.compress(RECORD), Kind.NCCL_LOG),
        (bz2.compress(RECORD), Kind.NCCL_LOG),
        (b"PK\x03\x04" + bytes(40), Kind.ARCHIVE),
        (MATRIX.decode().encode("utf-16"), Kind.NODE_TEXT),
    ],
)
def test_a_file_is_of_the_kind_of_its_content_whatever_its_form(head: bytes, kind: Kind) -> None:
    assert kind_of_file(head).kind is kind


@examples("text", "kind")
def test_a_text_is_of_the_kind_that_its_content_says(text: bytes, kind: Kind) -> None:
    assert kind_of_file(text).kind is kind


@examples("text", "words", "command")
def test_a_text_is_named_with_the_command_that_reads_it(text: bytes, words: str, command: str) -> None:
    seen = kind_of_file(text)
    assert (piece_of(seen).words, command_for(seen.kind, "x")) == (words, command)
    assert command in str(complaint(piece_of(seen)))
    assert words in str(complaint(piece_of(seen)))


def test_a_text_may_be_of_several_kinds() -> None:
    seen = kind_of_file(MATRIX + RECORD + b"#       size         count      type   redop\n")
    assert set(seen.kinds) == {Kind.NODE_TEXT, Kind.NCCL_LOG, Kind.NCCL_TESTS}
    assert seen.sources == ("nvidia-smi-topo",)


def test_wrapped_records_are_found() -> None:
    lines = b"".join(json.dumps({"log": RECORD.decode(), "stream": "stdout"}).encode() + b"\n" for _ in range(4))
    assert kind_of_file(lines).kind is Kind.NCCL_LOG
    assert kind_of_file(lines).coding == ("json-lines",) or len(kind_of_file(lines).coding) == 1


def test_every_kind_has_words_and_every_source_too() -> None:
    assert set(KINDS) == set(Kind)
    assert all(facts.words for facts in KINDS.values())
    assert all(source_words(source) for source in registry.SOURCES)


def test_a_command_can_be_typed_for_any_name() -> None:
    assert command_for(Kind.NCCL_LOG, "my job's log") == "topodiag logs 'my job'\"'\"'s log'"


@given(st.sampled_from([b"", *MAGIC]), st.binary(max_size=400), st.binary(max_size=40))
def test_any_bytes_look_like_something(magic: bytes, junk: bytes, tail: bytes) -> None:
    seen = kind_of_file(magic + junk, tail)
    assert seen.kinds
    assert piece_of(seen).words


@examples("text", "words")
def test_what_is_known_and_not_read_is_named_with_what_to_give_instead(text: str, words: str) -> None:
    seen = kind_of_file(text.encode())
    assert words in piece_of(seen).words
    assert "; give " in piece_of(seen).words


def test_a_text_that_is_read_is_called_by_its_own_kind_where_it_holds_a_list_of_jobs_too() -> None:
    assert kind_of_file(b"JOBID PARTITION NODELIST\nn1:7:9 [0] NCCL INFO Using network IB\n").what == ""


# --- what a node's tools print inside containers and behind launchers is read as what they print themselves; of a job's

KERNEL = "".join(
    f"6,{5121 + at},{88126015 + 5000 * at},-;mlx5_core 0000:5e:00.0 ibp94s0: Link up\n SUBSYSTEM=pci\n"
    for at in range(9)
)
ROWS = (
    "GPU 00000000:5E:00.0\n    Remapped Rows\n        Correctable Error : 0\n        Remapping Failure Occurred : Yes\n"
)
NCCL = "n1:1:2 [0] NCCL INFO NCCL version 2.27.5+cuda12.9\n"
LABELS = {
    "compose": "trainer-1  | ",
    "pod": "[pod/train-0/main] ",
    "cri": "2026-03-01T11:00:01.123456789Z stdout F ",
    "mpirun": "[1,0]<stdout>:",
    "compose in cri": "2026-03-01T11:00:01.5Z stdout F trainer-1  | ",
}


def behind(label: str, text: str) -> str:
    return "".join(label + line for line in text.splitlines(keepends=True))


@pytest.mark.parametrize("label", LABELS.values(), ids=LABELS)
@pytest.mark.parametrize("text", [KERNEL, ROWS], ids=["a kernel log", "remapped rows"])
def test_a_label_before_every_line_changes_no_verdict(tmp_path: Path, text: str, label: str) -> None:
    laid(tmp_path, {"plain.txt": text, "labelled.txt": behind(label, text)})
    plain, labelled = (diagnose([str(tmp_path / name)]) for name in ("plain.txt", "labelled.txt"))
    assert [finding.id for finding in labelled.findings] == [finding.id for finding in plain.findings]
    assert labelled.verdict.state is plain.verdict.state


@examples("label", "layers")
def test_of_a_jobs_lines_only_a_label_without_rank_and_time_is_taken_off(label: str, layers: tuple[str, ...]) -> None:
    seen = kind_of_file(behind(label, 3 * NCCL).encode())
    assert (seen.kinds[0], seen.coding) == (Kind.NCCL_LOG, layers)


# --- Any text is evidence: no text is judged by its first character, and the line that matters may stand anywhere


XID = "[ 3723.101] NVRM: Xid (PCI:0000:1b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.\n"
ECC = "[rank3]: torch.AcceleratorError: CUDA error: uncorrectable ECC error encountered\n"
TORN = "[rank0]: Traceback (most recent call last):\n[rank0]: ValueError: shapes do not match\n"


@examples("text")
def test_what_reads_as_json_is_json(text: str) -> None:
    assert is_json(text)
    assert kind_of_file(text.encode()).kind is Kind.JSON


@pytest.mark.parametrize(
    "text",
    [
        TORN,
        XID,
        "[2025-04-16 13:11:20,410 E 301 301] node_manager.cc:3041: something\n",
        "[1652790000.124511] [node12:31873:0] ib_iface.c:1035 UCX  ERROR\n",
        "[0] hello\n",
        "[1,2]<stdout>: hello\n",
        "[root@test1 ~]# ping test2\n",
        "{not json}\n",
        '{"a" 1}',
        "[1 2]",
        '{"a": 1}}',
        "[" * 1000,
    ],
)
def test_what_begins_with_a_bracket_and_does_not_read_as_json_is_none(text: str) -> None:
    assert not is_json(text)


@pytest.mark.parametrize(("line", "kind"), [(XID, Kind.NODE_TEXT), (ECC, Kind.JOB_OUTPUT)])
def test_the_line_that_matters_is_found_in_the_middle_of_a_long_text(tmp_path: Path, line: str, kind: Kind) -> None:
    noise = "Epoch 3: loss 0.31 lr 1e-4 grad norm 1.0\n" * (3 * HEAD_BYTES // 40)
    assert gather([str(filed(tmp_path, "slurm.out", noise + line + noise))]).pieces[0].kinds == (kind,)


def test_a_job_whose_output_holds_the_kernels_lines_is_both() -> None:
    assert set(kind_of_file((ECC + XID).encode()).kinds) == {Kind.NODE_TEXT, Kind.JOB_OUTPUT}


def test_of_a_text_without_a_known_line_nothing_is_known_and_what_was_looked_for_is_said(tmp_path: Path) -> None:
    result = diagnose(str(filed(tmp_path, "slurm.out", "Epoch 3: loss 0.31\n")))
    assert result.verdict.state.value == "unknown"
    assert "1 text without a line of NCCL" in result.verdict.headline
    said = " ".join(gap.why for gap in result.not_observed)
    for word in ("NCCL's records", "kernel's messages", "Slurm", "nvidia-smi"):
        assert word in said


@pytest.mark.parametrize("kept", [b"\x1f\x8b\x08\x00torn", bytes(range(256)) * 20, b""])
def test_what_is_no_text_is_refused(kept: bytes, tmp_path: Path) -> None:
    (tmp_path / "slurm.out").write_bytes(kept)
    with pytest.raises(InputError):
        diagnose(str(tmp_path / "slurm.out"))


def test_a_table_of_nccl_tests_is_found_behind_lines_of_the_job(tmp_path: Path) -> None:
    path = tmp_path / "slurm.out"
    row = "  1073741824   268435456   float   sum   -1   4800.0  223.70  419.43   0   4810.0  223.23  418.56   0\n"
    path.write_text("[rank0]:[W415 08:11:02.7 TCPStore.cpp:125] recvValue failed on SocketImpl(fd=72): closed\n" * 1200
                    + "# nThread 1 nGpus 8 minBytes 1 maxBytes 1 step: 2(factor)\n" + row)  # fmt: skip
    assert len(diagnose(str(path)).jobs) == 1
    assert len(bench(str(path)).benchmarks) == 1


# --- source text, lists of changes and handbooks name faults that nobody met; output that quotes them is evidence


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
