"""Nodes whose trees differ in the GUIDs of their NICs only are one to NCCL, and are searched once."""

from dataclasses import replace
from unittest.mock import patch

import pytest

from tests.nccl.small_trees import cpu, gpu, host, nic, pci
from topodiag.model.nccl_tree import Element
from topodiag.model.nccl_versions import NEWEST, OLDEST, spell_version
from topodiag.nccl.predict import predict_tree
from topodiag.nccl.search import searched
from topodiag.nccl.topo.numbered import numbered


def _with_guids(tree: Element, *guids: str | None) -> Element:
    """The tree with these GUIDs in its nets, in the order of the file; None: the net has none."""
    left = list(guids)

    def made(element: Element) -> Element:
        attributes = tuple((name, text) for name, text in element.attributes if name != "guid")
        if element.tag == "net" and (guid := left.pop(0)) is not None:
            attributes += (("guid", guid),)
        return replace(element, attributes=attributes, children=tuple(made(child) for child in element.children))

    return made(tree)


def _node(*guids: str | None) -> Element:
    tree = host(cpu(0, pci("80", gpu("10", dev=0), nic("40")), pci("81", gpu("11", dev=1), nic("41"))))
    return _with_guids(tree, *guids)


def test_nodes_of_one_build_become_one_tree() -> None:
    assert numbered([_node("0xa088c20326050eaf", "0xb0")]) == numbered([_node("0xa088c2038ff61ca2", "0x7")])


def test_ports_of_one_adapter_stay_so() -> None:
    shared, own = numbered([_node("0xa1", "0xA1")]), numbered([_node("0xa1", "0xa2")])
    assert shared == numbered([_node("0xb", "0x000b")])
    assert shared != own


def test_hosts_that_share_an_adapter_still_do() -> None:
    assert numbered([_node("0x1", "0x2"), _node("0x2", "0x3")]) == numbered([_node("0x7", "0x8"), _node("0x8", "0x9")])
    assert numbered([_node("0x1", "0x2"), _node("0x2", "0x3")]) != numbered([_node("0x1", "0x2"), _node("0x3", "0x4")])


@pytest.mark.parametrize("guid", [None, "a088c20326050eaf", "", " 0x5"])
def test_a_guid_that_nccl_may_compare_with_something_else_is_left_alone(guid: str | None) -> None:
    tree = _node("0xa1", guid)
    assert numbered([tree]) == (tree,)


@pytest.mark.parametrize("minor", [OLDEST, 20, NEWEST])
@pytest.mark.parametrize("guids", [("0xf1", "0xf1"), ("0xf1", "0xe1")])
def test_nccl_decides_the_same(minor: int, guids: tuple[str, str]) -> None:
    version, tree = spell_version(minor), _node(*guids)
    searched._searched.cache_clear()
    with (
        patch("topodiag.nccl.predict.numbered", lambda trees: trees),
        patch.object(searched, "numbered", lambda trees: trees),
    ):
        plain = predict_tree(tree, nodes=2, version=version, sizes=(1 << 20,))
    assert predict_tree(tree, nodes=2, version=version, sizes=(1 << 20,)) == plain


def test_alike_nodes_are_searched_once() -> None:
    searched._searched.cache_clear()
    with patch.object(searched, "search_graphs", wraps=vars(searched)["search_graphs"]) as search:
        for number in range(5):
            predict_tree(_node(f"0xab{number}", f"0xac{number}"), nodes=3, sizes=(1 << 21,))
    assert search.call_count <= 1
