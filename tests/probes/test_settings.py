"""Which variables are kept: those that bear on communication, and never a secret."""

import os
from pathlib import Path

import pytest

from tests.tables import examples
from topodiag.evidence.host.settings import Settings
from topodiag.evidence.interface import Blob, Parsed
from topodiag.evidence.tree import read_tree
from topodiag_probes.capture import capture
from topodiag_probes.variables import kept, wanted


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
