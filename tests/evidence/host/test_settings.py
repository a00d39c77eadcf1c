"""Settings from the environment and from nccl.conf."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.evidence.filled import read, recognises
from topodiag.evidence.host.settings import as_nccl_reads
from topodiag.words.unfilled import is_unfilled

CORPUS = Path(__file__).parents[4] / "shared" / "corpus"


@pytest.mark.parametrize(
    ("line", "read_as"),
    [
        ("NCCL_DEBUG=INFO", ("NCCL_DEBUG", "INFO")),
        ("NCCL_DEBUG=INFO ", ("NCCL_DEBUG", "INFO ")),
        ("NCCL_IB_HCA = mlx5", ("NCCL_IB_HCA ", " mlx5")),
        ("NCCL_IB_HCA==mlx5_0:1", ("NCCL_IB_HCA", "=mlx5_0:1")),
        ('NCCL_ALGO="Ring"', ("NCCL_ALGO", '"Ring"')),
        ("export NCCL_ALGO=Ring", ("export NCCL_ALGO", "Ring")),
        ("NCCL_ALGO=Ring # fast", ("NCCL_ALGO", "Ring # fast")),
        (" # NCCL_ALGO=Ring", (" # NCCL_ALGO", "Ring")),
        ("#NCCL_ALGO=Ring", None),
        ("NCCL_ALGO Ring", None),
        ("", None),
        ("NCCL_A=" + "x" * 2000, ("NCCL_A", "x" * 1023)),
    ],
)
def test_a_conf_line_is_read_to_the_letter_as_nccl_reads_it(line: str, read_as: tuple[str, str] | None) -> None:
    assert as_nccl_reads(line) == read_as


def test_no_other_kind_of_text_in_the_wild_is_taken_for_a_host_format() -> None:
    if not CORPUS.is_dir():
        pytest.skip("the corpus is not here")
    kinds = ("sys-pci", "sys-cpu", "os-state", "settings", "lspci", "systemctl", "kernel-log")
    wrong = []
    for folder in ("topo_m", "logs", "nccl_tests", "pairwise", "topo"):
        for path in sorted((CORPUS / folder).iterdir()):
            if path.suffix in (".txt", ".xml", ".csv"):
                text = path.read_text(errors="replace")[:65536]
                wrong += [(path.name, kind) for kind in kinds if recognises(kind, text)]
    assert wrong == []


@given(st.lists(st.text(max_size=40), max_size=12))
def test_every_line_of_any_conf_file_is_kept(lines: list[str]) -> None:
    clean = ["".join(char for char in line if char.isprintable()) for line in lines]
    clean = [line for line in clean if not is_unfilled(line) or " " not in line]  # messages of a program
    draft, _ = read("settings", "".join(f"{line}\n" for line in clean), "nccl.conf")
    assert [line.text for line in draft.conf_lines] == clean
