"""Node sets are counted before they are expanded, and there is one reader of them."""

import os

import pytest
from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet

from tests.tables import examples
from topodiag.evidence.intake.one_file import read_small
from topodiag.model.errors import InputError, TopodiagError
from topodiag.sweep import places
from topodiag.words import node_sets
from topodiag.words.node_sets import NodeSetError, expand, gpu_list

ODD = (
    "n[-1-99999999]", "n[1 - 99999999]", "r[0-9,0-9999999-1]", "n[-1--5-3]", "n[1-99999999999]",
    "n[0-9][0-9][0-9999999]",
    "n[1-9999999999999999999999]", "n[0-9/0-9]", "n[1-4]99999", "n[a-b]", "n[]", "n[1-]", "n[1-", "n[3-1]", "a b",
    "n[1-9]r[1-999999999]", "-x", "n[1-2", "a,,$b", "", "a b]", "n[5-1]", "a;b", "$(x)", "n[1-3,x]",
)  # fmt: skip


@pytest.mark.parametrize("text", ODD)
def test_a_set_that_is_none_or_too_large_ends_in_one_line(text: str) -> None:
    with pytest.raises(NodeSetError) as caught:
        expand(text)
    assert "\n" not in str(caught.value)
    with pytest.raises(TopodiagError):
        places.expand(text)


def test_sets_as_schedulers_write_them() -> None:
    assert expand("gpu[001-003]") == ("gpu001", "gpu002", "gpu003")
    assert len(expand("rack[1-2]node[0-7]")) == 16
    assert expand("n[0-8/4],x") == ("n0", "n4", "n8", "x")
    assert gpu_list("0-2,5") == (0, 1, 2, 5)
    with pytest.raises(TopodiagError):
        places.expand("64")  # a number is how many, and names no node


def test_groups_of_the_package_s_examples_are_nobodys_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ClusterShell.Defaults.config_paths", lambda name: [])
    with pytest.raises(TopodiagError, match="names a group, and this machine has no groups"):
        places.expand("@all")


def test_groups_of_the_site_are_looked_up(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    (tmp_path / "groups.conf").write_text("[Main]\ndefault: local\n[local]\nmap: echo gpu[1-3]\nlist: echo all\n")
    monkeypatch.setattr("ClusterShell.Defaults.config_paths", lambda name: [str(tmp_path / name)])
    assert places.expand("@train") == ("gpu1", "gpu2", "gpu3")
    with pytest.raises(NodeSetError):
        node_sets.expand("@train")


def test_a_pipe_is_refused_at_once(tmp_path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="is no plain file"):
        read_small(str(tmp_path / "pipe"), 100)
    (tmp_path / "large").write_bytes(b"x" * 101)
    with pytest.raises(InputError, match="is larger than"):
        read_small(str(tmp_path / "large"), 100)


@examples("text")
def test_one_name_with_brackets_gives_the_nodes_of_clustershell_in_its_order(text: str) -> None:
    assert expand(text) == tuple(map(str, NodeSet(text, resolver=RESOLVER_NOGROUP)))


def test_many_ranges_in_one_name_are_a_torn_line_and_not_a_hundred_thousand_nodes() -> None:
    assert len(expand("n" + "a".join(["[0-1]"] * 8))) == 256
    with pytest.raises(NodeSetError, match="more than 8 ranges in one name"):
        expand("n" + "a".join(["[0-1]"] * 17))
    assert len(expand(",".join(f"n{number}[0-1]a" for number in range(20)))) == 40, "one in each name"
