"""Commands, trees of files and AMD's tools as the collector runs and reads them."""

import errno
import json
import os
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tables import examples
from topodiag.evidence.host.settings import Settings
from topodiag.evidence.interface import Blob, Parsed
from topodiag.evidence.tree import read_tree
from topodiag_probes import tree as tree_module
from topodiag_probes.capture import capture
from topodiag_probes.items.amd import placed, probes
from topodiag_probes.reduced import amd_static
from topodiag_probes.registry import probes as every
from topodiag_probes.run import Finished, Groups, LineSink, Sink, run
from topodiag_probes.tree import Root, Tree
from topodiag_probes.variables import kept, wanted

SLACK_S = 3.0


def _run(argv: list[str], seconds: float = 10.0, limit: int = 1 << 20, groups: Groups | None = None) -> Finished:
    return run(argv, dict(os.environ), end=time.monotonic() + seconds, limit=limit, groups=groups or Groups())


def _is_gone(pid: int) -> bool:
    """Whether a process has ended, given a moment; a zombie has."""
    for _ in range(100):
        try:
            if Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z":
                return True
        except OSError:
            return True
        time.sleep(0.02)
    return False


@examples("script", "limit", "wanted")
def test_a_command_is_told_as_it_ended(stub, script: str, limit: int | None, wanted: dict[str, Any]):
    """What it printed, in Latin-1, or how much of it."""
    done = _run([str(stub("tool", script))], limit=limit or 1 << 20)
    shown = {name: getattr(done, name) for name in ("status", "rc", "why", "truncated")}
    shown |= {"out": done.stdout.decode("latin-1"), "err": done.stderr.decode("latin-1"), "printed": len(done.stdout),
              "few_errors": len(done.stderr) <= 16384}  # fmt: skip
    assert {name: shown[name] for name in wanted} == wanted


def test_a_file_that_is_no_program_is_an_error_and_a_missing_one_absent(stubs: Path):
    (stubs / "text").write_text("no program")
    assert _run([str(stubs / "text")]).status == "denied"
    assert _run([str(stubs / "nothing")]).status == "absent"


@examples("script")
def test_a_command_that_hangs_is_killed_and_keeps_what_it_printed(stub, script: str):
    begun = time.monotonic()
    done = _run([str(stub("tool", script))], seconds=0.5)
    assert time.monotonic() - begun < 0.5 + SLACK_S
    assert (done.status, done.stdout, done.rc) == ("timeout", b"begun\n", None)


def test_children_of_a_command_that_hangs_are_killed_with_it(stub, tmp_path: Path):
    pid = tmp_path / "pid"
    _run([str(stub("tool", f"trap '' TERM; sleep 600 & echo $! > {pid}; wait; wait"))], seconds=0.5)
    assert _is_gone(int(pid.read_text()))


def test_a_child_left_behind_with_the_pipe_open_is_not_waited_for(stub, tmp_path: Path):
    pid = tmp_path / "pid"
    begun = time.monotonic()
    done = _run([str(stub("tool", f"sleep 600 & echo $! > {pid}; echo out; exit 0"))], seconds=30.0)
    assert time.monotonic() - begun < 5.0
    assert (done.status, done.rc, done.stdout) == ("ok", 0, b"out\n")
    assert "left behind" in done.why
    assert _is_gone(int(pid.read_text()))


def test_nothing_starts_after_everything_was_killed(stub):
    groups = Groups()
    groups.kill_all()
    begun = time.monotonic()
    done = _run([str(stub("tool", "exec sleep 600"))], seconds=30.0, groups=groups)
    assert (done.status, done.rc) == ("error", None)
    assert "tool: " in done.why
    assert time.monotonic() - begun < SLACK_S


def test_a_filtered_stream_keeps_the_first_and_the_latest_lines_that_are_wanted():
    sink = LineSink(400, lambda line: line.startswith(b"keep"))
    for number in range(100):
        sink.feed(b"drop %d\nke" % number)
        sink.feed(b"ep %d\n" % number)
    kept = sink.value().split()[1::2]
    assert kept[0] == b"0"
    assert kept[-1] == b"99"
    assert sink.truncated
    assert len(sink.value()) <= 400


def test_a_filtered_stream_keeps_a_last_line_without_its_end():
    sink = LineSink(400, lambda line: True)
    sink.feed(b"a\nb")
    assert sink.value() == b"a\nb\n"


def test_a_sink_that_is_exactly_full_is_not_truncated():
    sink = Sink(3)
    sink.feed(b"abc")
    assert not sink.truncated
    sink.feed(b"d")
    assert sink.truncated
    assert sink.value() == b"abc"


# --- tree files: one bad file costs one line, and what is written reads back


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


def test_of_a_node_only_its_place_and_links_are_kept() -> None:
    text = "simd_count 1216\nunique_id 7281193340112209183\nlocation_id 9728\nvendor_id 4098\nhive_id 12\n"
    assert placed(text) == "simd_count 1216\nlocation_id 9728\nhive_id 12"


def test_amds_items_are_collected() -> None:
    names = {probe.id for probe in probes()}
    of_amd_smi = {f"amd-smi-{name}" for name in ("topology", "xgmi", "metric", "static")}
    assert names == of_amd_smi | {"sys-kfd", "rocm-smi-showtopo"}
    assert names <= {probe.id for probe in every()}


def test_serial_numbers_of_chips_stay_on_the_node() -> None:
    table = {
        "gpu_data": [{"gpu": 0, "asic": {"market_name": "AMD Instinct MI300X", "asic_serial": "0x5A0BA3C1F0D2E477"}}]
    }
    for indent in (None, 4):
        kept = json.loads(amd_static(json.dumps(table, indent=indent)))
        assert kept["gpu_data"][0]["asic"] == {"market_name": "AMD Instinct MI300X", "asic_serial": "N/A"}
