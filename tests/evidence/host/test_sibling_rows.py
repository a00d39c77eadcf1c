"""Rows of ranks or hosts become events where one of them stands apart, and nothing where all are alike."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topodiag.evidence.host.sibling_rows import SiblingRows
from topodiag.evidence.interface import Blob

TABLE = "rank  fwd_ms  data_ms  wait_ms\n0 102.1 4.1 {2}\n1 101.9 3.9 {2}\n2 102.3 {0} {1}\n3 102.0 4.0 {2}\n"
NAMED = "rank 0: step 5 data 12 ms\nrank 1: step 5 data 12 ms\nrank 2: step 5 data {} ms\n"
VERSIONS = "$ pdsh -w n[1-3] nccl-version\nn1: (2, 21, 5)\nn2: (2, 21, 5)\nn3: {}\n"
GPUS = "rank 0 -> cuda:0 (00000000:1B:00.0)\nrank 1 -> cuda:{} (00000000:{}:00.0)\n"
PROCESSES = "|    0   N/A  N/A   51231   C   python   {0}MiB |\n|    {1}   N/A  N/A   51232   C   python   {0}MiB |\n"
APPS = "00000000:1B:00.0, 51231, python, 30122 MiB\n00000000:{}:00.0, 51232, python, 30122 MiB\n"
ROW = "|    {0}   N/A  N/A   {1}   C   {3}   {2}MiB |\n"
DRAWS = "|    0   N/A  N/A      2711      G   /usr/lib/xorg/Xorg             218MiB |\n"


def table(*rows: tuple[int, int, int], program: str = "python") -> str:
    """Rows of nvidia-smi: GPU, process, MiB."""
    return "".join(ROW.format(gpu, pid, size, program) for gpu, pid, size in rows)


OWN = [(gpu, 4000 + gpu, 26163) for gpu in range(4)]
FIRST = [(0, 4000 + gpu, 871) for gpu in range(1, 4)]


def told(text: str) -> list[str]:
    return [event.kind.removeprefix("told of ") for event in SiblingRows().parse(Blob("t", text.encode())).records]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (TABLE.format("190.2", "1.1", "188.0"), "rank-late"),
        (NAMED.format(811), "rank-late"),
        (VERSIONS.format("(2, 18, 1)"), "versions-differ"),
        (GPUS.format(0, "1B"), "gpu-shared"),
        (PROCESSES.format(9310, 0), "gpu-shared"),
        (APPS.format("1B"), "gpu-shared"),
        (table(OWN[0], *FIRST, *OWN[1:]), "gpu-contexts"),
        (table(*OWN, *FIRST[1:]), "gpu-contexts"),
        (DRAWS + table(*OWN[:2], *FIRST[:1]), "gpu-contexts"),
    ],
)
def test_the_row_that_stands_apart_is_told(text: str, kind: str) -> None:
    assert told(text) == [kind]
    assert SiblingRows().recognises(text)


@pytest.mark.parametrize(
    "text",
    [
        TABLE.format("4.2", "1.0", "1.1"),
        TABLE.format("4.2", "90.0", "1.1"),
        NAMED.format(13),
        NAMED.format(13) + NAMED.format(811),
        VERSIONS.format("(2, 21, 5)"),
        VERSIONS.format("(2, 18, 1)").replace("n2: (2, 21, 5)", "n2: (2, 20, 3)"),
        GPUS.format(1, "43"),
        PROCESSES.format(9310, 1),
        PROCESSES.format(450, 0),
        table(*OWN),
        table(*OWN, FIRST[0]),
        table(*OWN, *((gpu, 4000, 871) for gpu in range(1, 4))),
        table(*((gpu, 4000, 9000) for gpu in range(4))),
        table(*OWN, *((gpu, pid, 458) for gpu, pid, _ in OWN for pid in range(4000, 4004) if pid != 4000 + gpu)),
        table(OWN[0], OWN[1], (0, 4001, 458), (1, 4000, 458)),
        table(*OWN, *((0, pid, 30) for pid in range(4001, 4004))),
        DRAWS + table((0, 5000, 900), program="blender") + table((0, 5001, 1400), (1, 5001, 300), program="python"),
        table(OWN[0], *FIRST, *OWN[1:], program="nvidia-cuda-mps-server"),
        table(OWN[0], *FIRST, *OWN[1:]).replace("   C   ", "   M+C   "),
        APPS.format("43"),
    ],
)
def test_rows_that_are_alike_say_nothing(text: str) -> None:
    assert told(text) == []
    assert not SiblingRows().recognises(text)


@given(st.binary())
def test_any_bytes_are_read_without_an_exception(data: bytes) -> None:
    SiblingRows().parse(Blob("any.txt", data))
