"""The corpus' whole communicators: what NCCL's released libraries decided on the hardware of a topology file.

Ports that NCCL merges into virtual NICs, and the trees of the ranks joined in rank order, are in these alone.
"""

from pathlib import Path

import pytest

from benchmarks.nccl_agreement import Tally, compare_file

FOLDER = Path(__file__).resolve().parents[3] / "shared" / "corpus" / "topo2"
FILES = sorted(FOLDER.glob("*.xml"))

if not FILES:
    pytest.skip(f"the corpus is not at {FOLDER}: nothing was compared", allow_module_level=True)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_communicator_is_as_nccl_sets_it_up(path: Path) -> None:
    tally = Tally()
    compare_file(tally, path)
    assert sum(tally.asked.values()) > 100
    assert not tally.misses
