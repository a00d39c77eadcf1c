"""Tree files: one bad file costs one line, and what is written reads back."""

import errno
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tables import examples
from topodiag.evidence.host.settings import Settings
from topodiag.evidence.interface import Blob, Parsed
from topodiag.evidence.tree import read_tree
from topodiag_probes import tree as tree_module
from topodiag_probes.capture import capture
from topodiag_probes.tree import Root, Tree
from topodiag_probes.variables import kept, wanted


def _tree(root: Path, **limits: int) -> Tree:
    return Tree(Root(str(root)), **limits)


def test_a_file_is_one_line_for_each_of_its_lines(machine: Path):
    tree = _tree(machine)
    tree.text("etc/nccl.conf")
    assert tree.value() == b"= etc/nccl.conf\tNCCL_IB_HCA = mlx5\n= etc/nccl.conf\t# a comment\n"


def test_a_file_that_is_not_there_leaves_no_line(machine: Path):
    tree = _tree(machine)
    assert tree.text("sys/no/such/file") is None
    assert tree.value() == b""


def test_an_error_on_one_counter_loses_that_counter_only(machine: Path, monkeypatch: pytest.MonkeyPatch):
    read = Root.read

    def faulty(self: Root, path: str, *rest: object) -> bytes:
        if path.endswith("/b"):
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        return read(self, path, *rest)  # type: ignore[arg-type]

    for name in "abc":
        (machine / name).write_text("1")
    monkeypatch.setattr(tree_module.Root, "read", faulty)
    tree = _tree(machine)
    tree.texts(".", "abc")
    assert tree.value().decode() == "= ./a\t1\n! ./b\tEINVAL Invalid argument\n= ./c\t1\n"


def test_a_file_longer_than_the_limit_is_cut_and_said_so(machine: Path):
    tree = _tree(machine)
    tree.text("var/log/fabricmanager.log", limit=10)
    assert tree.value() == b"= var/log/fabricmanager.log\terror\n= var/log/fabricmanager.log\terro\n"
    assert tree.truncated


def test_a_tree_stops_at_its_limits(machine: Path):
    small, few = _tree(machine, limit=50), _tree(machine, files=1)
    for tree in (small, few):
        for _ in range(9):
            tree.text("etc/nccl.conf")
        assert tree.truncated
        assert tree.value().count(b"\n") <= 2


def test_a_fifo_is_not_opened_for_ever(machine: Path):
    os.mkfifo(machine / "fifo")
    tree = _tree(machine)
    tree.text("fifo")
    assert tree.value().startswith(b"! fifo\tEINVAL")


def test_a_link_out_of_a_copied_root_is_refused(machine: Path, tmp_path: Path):
    (tmp_path / "secret").write_text("secret")
    os.symlink("../secret", machine / "out")
    os.symlink(tmp_path / "secret", machine / "absolute")
    tree = _tree(machine)
    tree.texts(".", ["out", "absolute"])
    assert b"secret" not in tree.value()
    assert tree.value().count(b"ELOOP") == 2


def test_links_and_bytes_and_folders_have_their_own_lines(machine: Path):
    tree = _tree(machine)
    tree.link("sys/bus/pci/devices/0000:15:01.0")
    tree.binary("sys/bus/pci/devices/0000:1b:00.0/config", 4)
    tree.folder("sys/kernel/iommu_groups")
    assert tree.value().decode().split("\n")[:3] == [
        "> sys/bus/pci/devices/0000:15:01.0\t../../../devices/pci0000:15/0000:15:01.0",
        "x sys/bus/pci/devices/0000:1b:00.0/config\t00010203",
        "d sys/kernel/iommu_groups\t",
    ]


@given(
    name=st.text(st.characters(blacklist_categories=("Cs",)), min_size=1).filter(lambda text: text.strip("/")),
    text=st.text(st.characters(blacklist_categories=("Cs",), blacklist_characters="\x00\x1b")),
)
def test_any_path_and_any_line_read_back_as_they_were(name: str, text: str):
    tree = Tree(Root("/"))
    tree.line("top/" + name, text)
    read = read_tree(Blob("x", tree.value()), Parsed())
    if "\x00" not in name and "\x1b" not in name:
        assert [line for _, line in read["top/" + name].lines] == [text]


# --- Which variables are kept: those that bear on communication, and never a secret


@examples("name")
def test_settings_of_communication_are_kept(name: str):
    assert wanted(name)


@examples("name")
def test_secrets_and_what_is_none_of_our_business_are_not(name: str):
    assert not wanted(name)


@examples("name", "value")
def test_a_value_of_its_variables_form_is_kept_as_it_is(name: str, value: str):
    assert kept({name: value}) == {name: value}


@examples("name", "value")
def test_a_value_of_another_form_is_replaced_and_it_is_said(name: str, value: str):
    (shown,) = kept({name: value}).values()
    assert shown.startswith("<replaced: not ")


def test_a_device_of_this_node_may_have_any_name():
    assert kept({"NCCL_SOCKET_IFNAME": "hunter2"}, ["hunter2"]) == {"NCCL_SOCKET_IFNAME": "hunter2"}


def test_a_value_that_was_not_kept_is_no_setting_and_counts_as_unread():
    text = b"d environ\t\n= environ\tNCCL_ALGO=<replaced: not known words>\n= environ\tNCCL_DEBUG=WARN\n"
    parsed = Settings().parse(Blob("settings.tree", text))
    assert parsed.records == [1, 3]  # that the environment was looked at, and NCCL_DEBUG
    assert parsed.unread_count == 1


def test_the_files_that_nccl_reads_are_there_and_the_users_name_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    home = tmp_path / "alice"
    home.mkdir()
    (home / ".nccl.conf").write_text("NCCL_DEBUG=WARN\n")
    (tmp_path / "site.conf").write_text("NCCL_ALGO=Ring\n")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("NCCL_CONF_FILE", str(tmp_path / "site.conf"))
    monkeypatch.setenv("NCCL_NOTE", "two\nlines")
    data = capture(only=["settings"]).files["trees/settings.tree"]
    tree = read_tree(Blob("settings", data), Parsed())
    assert tree["HOME/.nccl.conf"].text == "NCCL_DEBUG=WARN"
    assert tree[str(tmp_path / "site.conf").lstrip("/")].text == "NCCL_ALGO=Ring"
    assert any(line.startswith("NCCL_NOTE=<replaced: ") for _, line in tree["environ"].lines)
    assert b"alice" not in data


def test_that_nothing_is_set_is_a_fact(monkeypatch: pytest.MonkeyPatch):
    for name in kept(dict(os.environ)):
        monkeypatch.delenv(name)
    bundle = capture(only=["settings"])
    (item,) = [item for item in bundle.manifest["items"] if item["id"] == "settings"]
    assert item["status"] == "ok"
