from tests.nccl.rccl.machines import mi300x
from topodiag.evidence.nccl_xml import read_file
from topodiag.nccl.rccl.decide import decided
from topodiag.nccl.rccl.match import CHORDAL_RINGS
from topodiag.nccl.rccl.models import layout_of


def test_a_machine_is_described_as_the_known_sets_are() -> None:
    layout = layout_of(decided(read_file(mi300x(), "n.xml").tree, nodes=1, env={}).system)
    assert layout.pattern == "4040"
    assert layout.numa == (0, 0, 0, 0, 1, 1, 1, 1)
    assert layout.most_links == 7
    assert layout.links[0] == (0, 1, 1, 1, 1, 1, 1, 1)


def test_eight_gpus_that_each_lack_one_peer_are_a_chord() -> None:
    far = [(0, 7), (1, 6), (2, 5), (3, 4)]
    made = decided(read_file(mi300x(lost=far, gcn="gfx908"), "n.xml").tree, nodes=1, env={})
    assert made.by.decided_by == "chordal"
    assert made.ring.channels == len(CHORDAL_RINGS)
    assert made.ring.intra[0] == [0, 1, 2, 3, 5, 4, 7, 6]
