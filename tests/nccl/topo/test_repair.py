"""A sick topology made like its own healthy parts."""

from hypothesis import given
from hypothesis import strategies as st

from tests.nccl.small_trees import GEN5, cpu, gpu, host, nic, nvlink, pci, to_gpu
from tests.tables import examples
from topodiag.model.nccl_tree import Element
from topodiag.nccl.topo import changes
from topodiag.nccl.topo.changes import apply
from topodiag.nccl.topo.repair import repair


def adapter(dev: int) -> Element:
    return nic(f"{dev + 0x40:02x}", 400000, speed=GEN5, name=f"mlx5_{dev}", dev=dev)


def branch(dev: int) -> Element:
    """A switch with a NIC, and below a second switch a GPU with 18 links to NVSwitches: a DGX H100's."""
    one = gpu(f"{dev + 0x30:02x}", nvlink("fffffff:ffff:ff", 18), dev=dev, sm=90, speed=GEN5)
    return pci(f"{dev + 0x10:02x}", adapter(dev), pci(f"{dev + 0x20:02x}", one, speed=GEN5), speed=GEN5)


def machine(gpus: int = 8) -> Element:
    return host(*(cpu(at, *map(branch, range(at * gpus // 2, (at + 1) * gpus // 2))) for at in range(2)))


def mesh(counts: dict[tuple[int, int], int]) -> Element:
    """Four GPUs with direct links as counted from either end."""
    ends = [[to_gpu(f"3{b}", count) for (a, b), count in counts.items() if a == dev] for dev in range(4)]
    return host(cpu(0, *(gpu(f"3{dev}", *links, dev=dev, speed=GEN5) for dev, links in enumerate(ends))))


def links(tree: Element, dev: int) -> list[str | None]:
    return [link.get("count") for link in changes.gpus_of(tree)[dev].having("gpu")[0].having("nvlink")]


def broken(*made: changes.Change, tree: Element | None = None) -> Element:
    return apply(tree or machine(), made).tree


@examples("gpus", "faults", "words", "whole")
def test_what_is_repaired(gpus: int | None, faults: list[list[str]], words: list[str], whole: bool) -> None:
    """The words of each repair of a machine with some faults, and whether it is as it was without them."""
    sound = machine(gpus or 8)
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


CHANGES = st.one_of(
    st.builds(lambda d, n: changes.down(f"nvlink:GPU{d}:{n}"), st.integers(0, 7), st.integers(1, 18)),
    st.builds(lambda d, n: changes.width(f"GPU{d}={n}"), st.integers(0, 7), st.sampled_from([1, 2, 4, 8])),
    st.builds(lambda d, n: changes.speed(f"mlx5_{d}=gen{n}"), st.integers(0, 7), st.integers(1, 4)),
)


@given(CHANGES)
def test_any_one_fault_is_repaired(change: changes.Change) -> None:
    assert repair(broken(change)).tree == machine()


@given(st.lists(CHANGES, max_size=4))
def test_a_repair_leaves_nothing_to_repair(made: list[changes.Change]) -> None:
    try:
        sick = broken(*made)
    except changes.ChangeError:
        return
    once = repair(sick).tree
    assert repair(once).repairs == ()
