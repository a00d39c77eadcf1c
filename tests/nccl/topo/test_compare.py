"""Two machines compared by what matters, and a sick one made like its own healthy parts."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from tests.nccl.small_trees import GEN5, cpu, element, gpu, host, nic, nvlink, pci, to_gpu
from tests.tables import examples
from topodiag.model.nccl_tree import Element
from topodiag.nccl.topo import changes
from topodiag.nccl.topo.changes import apply
from topodiag.nccl.topo.compare import Difference, compare
from topodiag.nccl.topo.repair import repair


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


# --- a sick topology made like its own healthy parts


def adapter(dev: int) -> Element:
    return nic(f"{dev + 0x40:02x}", 400000, speed=GEN5, name=f"mlx5_{dev}", dev=dev)


def branch(dev: int) -> Element:
    """A switch with a NIC, and below a second switch a GPU with 18 links to NVSwitches: a DGX H100's."""
    one = gpu(f"{dev + 0x30:02x}", nvlink("fffffff:ffff:ff", 18), dev=dev, sm=90, speed=GEN5)
    return pci(f"{dev + 0x10:02x}", adapter(dev), pci(f"{dev + 0x20:02x}", one, speed=GEN5), speed=GEN5)


def dgx(gpus: int = 8) -> Element:
    return host(*(cpu(at, *map(branch, range(at * gpus // 2, (at + 1) * gpus // 2))) for at in range(2)))


def mesh(counts: dict[tuple[int, int], int]) -> Element:
    """Four GPUs with direct links as counted from either end."""
    ends = [[to_gpu(f"3{b}", count) for (a, b), count in counts.items() if a == dev] for dev in range(4)]
    return host(cpu(0, *(gpu(f"3{dev}", *links, dev=dev, speed=GEN5) for dev, links in enumerate(ends))))


def links(tree: Element, dev: int) -> list[str | None]:
    return [link.get("count") for link in changes.gpus_of(tree)[dev].having("gpu")[0].having("nvlink")]


def broken(*made: changes.Change, tree: Element | None = None) -> Element:
    return apply(tree or dgx(), made).tree


@examples("gpus", "faults", "words", "whole")
def test_what_is_repaired(gpus: int | None, faults: list[list[str]], words: list[str], whole: bool) -> None:
    """The words of each repair of a machine with some faults, and whether it is as it was without them."""
    sound = dgx(gpus or 8)
    repaired = repair(broken(*(getattr(changes, name)(told) for name, told in faults), tree=sound))
    assert [one.words for one in repaired.repairs] == words
    assert all(one.words.partition(":")[0] in one.attention for one in repaired.repairs)
    assert (repaired.tree == sound) is whole


def test_a_nic_under_the_processor_goes_back_to_the_switch_that_lacks_one() -> None:
    tree = broken(changes.remove("mlx5_6"))
    cpu0, cpu1 = tree.children
    stray = Element(cpu1.tag, cpu1.attributes, (*cpu1.children, adapter(6)))
    repaired = repair(Element(tree.tag, tree.attributes, (cpu0, stray)))
    assert [one.words for one in repaired.repairs] == ["mlx5_6: put beside GPU6, where the other GPUs have theirs"]
    again = changes.gpus_of(repaired.tree)
    assert sorted(again) == list(range(8))
    home = next(
        b for b in repaired.tree.children[1].children if any(e.get("dev") == "6" and e.tag == "gpu" for e in b.walk())
    )
    assert "mlx5_6" in changes.nets_of(home)


def test_two_strays_for_two_places_are_left_alone() -> None:
    tree = broken(changes.remove("mlx5_6"), changes.remove("mlx5_5"))
    cpu0, cpu1 = tree.children
    stray = Element(cpu1.tag, cpu1.attributes, (*cpu1.children, adapter(6), adapter(5)))
    assert repair(Element(tree.tag, tree.attributes, (cpu0, stray))).repairs == ()


def test_a_link_that_only_one_end_names_gets_its_reverse() -> None:
    repaired = repair(mesh({(0, 1): 4, (1, 0): 4, (2, 3): 4}))
    assert links(repaired.tree, 3) == ["4"]
    assert repaired.repairs[0].words == "GPU3 to GPU2: 0 NVLinks made 4, as the other end counts"


FAULTS = st.one_of(
    st.builds(lambda d, n: changes.down(f"nvlink:GPU{d}:{n}"), st.integers(0, 7), st.integers(1, 18)),
    st.builds(lambda d, n: changes.width(f"GPU{d}={n}"), st.integers(0, 7), st.sampled_from([1, 2, 4, 8])),
    st.builds(lambda d, n: changes.speed(f"mlx5_{d}=gen{n}"), st.integers(0, 7), st.integers(1, 4)),
)


@given(FAULTS)
def test_any_one_fault_is_repaired(change: changes.Change) -> None:
    assert repair(broken(change)).tree == dgx()


@given(st.lists(FAULTS, max_size=4))
def test_a_repair_leaves_nothing_to_repair(made: list[changes.Change]) -> None:
    try:
        sick = broken(*made)
    except changes.ChangeError:
        return
    once = repair(sick).tree
    assert repair(once).repairs == ()
