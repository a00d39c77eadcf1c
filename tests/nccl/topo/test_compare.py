"""Two machines compared by what matters."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from tests.nccl.small_trees import GEN5, element, host
from tests.tables import examples
from topodiag.model.nccl_tree import Element
from topodiag.nccl.topo import changes
from topodiag.nccl.topo.changes import apply
from topodiag.nccl.topo.compare import Difference, compare


def machine(domain: str = "0000", hash_: str = "0x1", first: int = 1) -> Element:
    """Two switches, each with a GPU of 18 NVLinks and a NIC; what runs and machines number anew is by the arguments."""

    def pci(bus: int, *children: Element) -> Element:
        link = {"link_speed": GEN5, "link_width": 16}
        return element("pci", *children, busid=f"{domain}:{bus:02x}:00.0", **link)

    def branch(at: int) -> Element:
        links = element("nvlink", target=f"{domain}:07:00.0", count=18)
        net = element("net", name=f"mlx5_{at}", speed=400000, guid=f"0x{first}{at}", gdr=1)
        gpu = element("gpu", links, dev=at, sm=90, rank=at * first)
        return pci(0x10 + at, pci(0x20 + at, gpu), pci(0x30 + at, element("nic", net)))

    return host(element("cpu", branch(0), branch(1), numaid=0, host_hash=hash_, arch="x86_64"))


def test_what_differs_by_nature_is_no_difference() -> None:
    assert compare(machine(), machine("0001", "0x2", 3)) == ()


@examples("made", "differences")
def test_what_changed_is_told(made: list[tuple[str, str]], differences: list[tuple[str, str, str, str]]) -> None:
    sick = apply(machine(), [getattr(changes, name)(words) for name, words in made]).tree
    assert compare(sick, machine()) == tuple(Difference(*each) for each in differences)


def test_a_nic_beside_another_gpu_is_told() -> None:
    cpu = machine().children[0]
    first, second = cpu.children
    swapped = replace(cpu, children=(replace(first, children=(first.children[0], second.children[1])),
                                     replace(second, children=(second.children[0], first.children[1]))))  # fmt: skip
    differences = compare(replace(machine(), children=(swapped,)), machine())
    assert Difference("mlx5_0", "beside", "GPU1", "GPU0") in differences


def test_bus_ids_count_only_when_asked_for() -> None:
    other = machine()
    moved = apply(other, []).tree
    text = [e for e in moved.walk() if e.get("busid") == "0000:21:00.0"]
    assert text
    swapped = _renamed(moved, "0000:21:00.0", "0000:41:00.0")
    assert compare(swapped, other) == ()
    assert compare(swapped, other, buses=True) == (Difference("GPU1", "bus id", "41:00.0", "21:00.0"),)


def _renamed(tree: Element, old: str, new: str) -> Element:
    attributes = tuple((name, new if value == old else value) for name, value in tree.attributes)
    return replace(tree, attributes=attributes, children=tuple(_renamed(child, old, new) for child in tree.children))


CHANGES = st.lists(
    st.one_of(
        st.builds(lambda d, n: changes.down(f"nvlink:GPU{d}:{n}"), st.integers(0, 1), st.integers(1, 9)),
        st.builds(lambda d, n: changes.width(f"GPU{d}={n}"), st.integers(0, 1), st.sampled_from([1, 2, 4, 8])),
    ),
    max_size=3,
)


@given(CHANGES)
def test_the_other_way_round_is_the_mirror(made: list[changes.Change]) -> None:
    try:
        sick = apply(machine(), made).tree
    except changes.ChangeError:
        return
    there = {(d.device, d.what, d.left, d.right) for d in compare(sick, machine())}
    back = {(d.device, d.what, d.right, d.left) for d in compare(machine(), sick)}
    assert there == back
    assert not compare(sick, sick)


def with_cpu(**attributes: str) -> Element:
    (cpu,) = machine().children
    return replace(machine(), children=(replace(cpu, attributes=(*cpu.attributes, *attributes.items())),))


@examples("one", "other")
def test_a_mask_is_the_cpus_that_it_names_however_wide_it_is_written(one: str, other: str) -> None:
    assert compare(with_cpu(affinity=one), with_cpu(affinity=other)) == ()


def test_cpus_that_differ_are_told_as_a_list_and_what_is_no_mask_as_it_is() -> None:
    differences = compare(with_cpu(affinity="ffffffff"), with_cpu(affinity="0000ffff,00000000"))
    assert differences == (Difference("NUMA 0", "cpus", "0-31", "32-47"),)
    differences = compare(with_cpu(affinity="all"), with_cpu(affinity="f," * 5000 + "f"))
    assert [difference.what for difference in differences] == ["cpus"]


def test_c2c_counts_by_what_its_links_carry_together() -> None:
    def tray(bw: str, count: str) -> Element:
        gpu = element("gpu", element("c2c", bw=bw, count=count), dev=0)
        return host(element("cpu", element("pci", gpu, busid="0000:10:00.0"), numaid=0))

    assert compare(tray("44712", "10"), tray("447120", "1")) == ()
    assert compare(tray("44712", "5"), tray("44712", "10")) == (
        Difference("GPU0", "C2C", "223.56 GB/s", "447.12 GB/s"),
    )
