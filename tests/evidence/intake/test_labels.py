"""What a node's tools print inside containers and behind launchers is read as what they print themselves; of a job's
lines a label that says rank or time stays."""

from pathlib import Path

import pytest

from tests.tables import examples
from topodiag.api import diagnose
from topodiag.evidence.intake.kind_of_file import kind_of_file
from topodiag.evidence.kinds import Kind

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
    (tmp_path / "plain.txt").write_text(text)
    (tmp_path / "labelled.txt").write_text(behind(label, text))
    plain, labelled = (diagnose([str(tmp_path / name)]) for name in ("plain.txt", "labelled.txt"))
    assert [finding.id for finding in labelled.findings] == [finding.id for finding in plain.findings]
    assert labelled.verdict.state is plain.verdict.state


@examples("label", "layers")
def test_of_a_jobs_lines_only_a_label_without_rank_and_time_is_taken_off(label: str, layers: tuple[str, ...]) -> None:
    seen = kind_of_file(behind(label, 3 * NCCL).encode())
    assert (seen.kinds[0], seen.coding) == (Kind.NCCL_LOG, layers)
