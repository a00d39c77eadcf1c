"""Any text is evidence: no text is judged by its first character, and the line that matters may stand anywhere."""

from pathlib import Path

import pytest

from tests.tables import examples
from topodiag.api import bench, diagnose
from topodiag.evidence.intake.gather import gather
from topodiag.evidence.intake.genre import is_json
from topodiag.evidence.intake.kind_of_file import kind_of_file
from topodiag.evidence.intake.one_file import HEAD_BYTES
from topodiag.evidence.kinds import Kind
from topodiag.model.errors import InputError

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


@examples("text", "kind")
def test_one_line_tells_what_a_text_is(text: str, kind: Kind) -> None:
    assert kind_of_file(text.encode()).kind is kind


@pytest.mark.parametrize(
    "text",
    [
        "step 12 loss 0.3\n" * 50,
        "we saw that Error while creating shared memory segment /dev/shm/nccl-U was printed\n",
        "2026-01-01 WARNING retry: requests.exceptions.ConnectionError: no\n",
        "INFO using /dev/shm for the cache of shared memory\n",
    ],
)
def test_a_text_of_which_no_line_speaks_stays_unknown(text: str) -> None:
    assert kind_of_file(text.encode()).kind is Kind.TEXT


@pytest.mark.parametrize(("line", "kind"), [(XID, Kind.NODE_TEXT), (ECC, Kind.JOB_OUTPUT)])
def test_the_line_that_matters_is_found_in_the_middle_of_a_long_text(tmp_path: Path, line: str, kind: Kind) -> None:
    noise = "Epoch 3: loss 0.31 lr 1e-4 grad norm 1.0\n" * (3 * HEAD_BYTES // 40)
    path = tmp_path / "slurm.out"
    path.write_text(noise + line + noise)
    assert gather([str(path)]).pieces[0].kinds == (kind,)


def test_a_job_whose_output_holds_the_kernels_lines_is_both() -> None:
    assert set(kind_of_file((ECC + XID).encode()).kinds) == {Kind.NODE_TEXT, Kind.JOB_OUTPUT}


def test_of_a_text_without_a_known_line_nothing_is_known_and_what_was_looked_for_is_said(tmp_path: Path) -> None:
    path = tmp_path / "slurm.out"
    path.write_text("Epoch 3: loss 0.31\n")
    result = diagnose(str(path))
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
