"""The capture as a whole: complete, in time whatever the host does, and honest about what it did not get."""

import io
import json
import os
import shutil
import tarfile
import threading
import time
from pathlib import Path

import pytest

from tests.tables import examples
from topodiag.evidence import registry
from topodiag.evidence.intake.bundle import Evidence, from_memory, open_evidence
from topodiag.evidence.intake.reader import read_node
from topodiag.model.node import Sight, gpu_sight
from topodiag.model.provenance import Topic
from topodiag_probes.bundle import Bundle
from topodiag_probes.capture import capture, write_folder, write_tar
from topodiag_probes.interface import Context
from topodiag_probes.items.cpu import one_per_socket
from topodiag_probes.items.kernel_log import wanted
from topodiag_probes.registry import probes
from topodiag_probes.run import Groups
from topodiag_probes.tree import Root

SLACK_S = 15.0
"""A machine with nine times its load starts a probe's processes slowly; what hangs here sleeps for minutes."""
STATUSES = {"ok", "absent", "timeout", "denied", "error", "skipped"}


def _items(bundle: Bundle) -> dict[tuple[str, int], dict[str, object]]:
    return {(item["id"], item["sample"]): item for item in bundle.manifest["items"]}


def _text(bundle: Bundle, item: str) -> str:
    return bundle.files[str(_items(bundle)[item, 0]["file"])].decode()


def test_every_probe_is_in_the_manifest_with_a_status_and_a_reason(machine: Path):
    bundle = capture(root=str(machine))
    items = _items(bundle)
    assert {probe.id for probe in probes()} == {name for name, _ in items}
    for item in items.values():
        assert item["status"] in STATUSES
        assert item["why"] or item["status"] == "ok"
        assert (item["file"] in bundle.files) == bool(item["file"])
    assert set(bundle.files) == {item["file"] for item in items.values() if item["file"]}


def test_every_kind_is_one_that_a_source_reads_or_raw():
    unread = {probe.kind for probe in probes() if registry.source(probe.kind) is None}
    assert unread <= {"raw", "nccl-xml"}


def test_commands_and_libraries_are_not_asked_about_a_copied_root(machine: Path, stub):
    stub("ibstat", "echo this host")
    bundle = capture(root=str(machine), extra_path=str(machine.parent / "stubs"))
    for name in ("ibstat", "nvml", "ethtool-IF", "dmesg"):
        assert _items(bundle)[name, 0]["status"] == "skipped"
    assert bundle.manifest["host"] == "gpu-001"


@examples("item", "holds", "lacks")
def test_a_tree_holds_what_is_asked_for_and_nothing_else(machine: Path, item: str, holds: list[str], lacks: list[str]):
    text = _text(capture(root=str(machine)), item)
    assert [line for line in holds if line not in text] == []
    assert [words for words in lacks if words in text] == []


def test_one_processor_of_each_socket_is_kept(machine: Path):
    text = _text(capture(root=str(machine)), "sys-cpu")
    assert "= proc/cpuinfo\tprocessor\\t" not in text
    shown = [line for line in text.split("\n") if "processor" in line]
    assert shown == ["= proc/cpuinfo\tprocessor\t: 0", "= proc/cpuinfo\tprocessor\t: 2"]
    assert "= sys/devices/system/cpu/cpu2/topology/physical_package_id\t1\n" in text


def test_a_kernel_that_names_no_sockets_has_one():
    assert (
        one_per_socket("processor : 0\nBogoMIPS : 2\n\nprocessor : 1\nBogoMIPS : 2\n") == "processor : 0\nBogoMIPS : 2"
    )


def test_of_a_log_the_end_is_kept(machine: Path):
    bundle = capture(root=str(machine))
    assert _text(bundle, "fabricmanager-log").endswith("error\nerror: the end\n")
    assert 64 * 1024 - 8 < len(_text(bundle, "fabricmanager-log")) <= 64 * 1024


@examples("line", "kept")
def test_of_the_kernel_log_the_lines_about_the_fabric_are_kept(line: bytes, kept: bool):
    assert wanted(line) is kept


def test_a_host_where_everything_hangs_costs_the_deadline_and_nothing_else(stub, stubs: Path, tmp_path: Path):
    hang = f"echo $$ >> {tmp_path}/pids; echo begun; "
    for name, script in {
        "nvidia-smi": hang + "trap '' TERM; while :; do sleep 1; done",
        "lspci": hang + "sleep 600 & exit 0",
        "ibstat": "exec yes",
        "ibv_devinfo": hang + "exec sleep 600",
        "rdma": "echo no netlink >&2; exit 3",
        "dmesg": r"printf 'NVRM: Xid \377\376\n'",
        "journalctl": hang + "exec sleep 600",
        "systemctl": hang + "exec sleep 600",
        "ethtool": hang + "exec sleep 600",
        "ibdev2netdev": "echo mlx5_0 port 1 '==>' eth0 '(Up)'",
    }.items():
        stub(name, script)
    begun = time.monotonic()
    bundle = capture(deadline_s=3.0, extra_path=str(stubs))
    assert time.monotonic() - begun < 3.0 + SLACK_S
    items = _items(bundle)
    status = {
        name: items[name, 0]["status"] for name in ("nvidia-smi-q", "lspci", "ibstat", "ibv-devinfo", "systemctl")
    }
    assert status == {
        "nvidia-smi-q": "timeout",
        "lspci": "ok",
        "ibstat": "ok",
        "ibv-devinfo": "timeout",
        "systemctl": "timeout",
    }
    assert items["rdma-link", 0]["rc"] == 3
    assert items["rdma-link", 0]["stderr"] == "no netlink"
    assert items["ibstat", 0]["truncated"]
    assert bundle.files["commands/nvidia-smi-q.txt"] == b"begun\n"
    assert bundle.files["commands/dmesg.txt"] == b"NVRM: Xid \xff\xfe\n"
    assert _text(bundle, "ibdev2netdev") == "mlx5_0 port 1 ==> eth0 (Up)\n"
    assert items["sys-cpu", 0]["status"] == "ok"
    json.dumps(bundle.manifest)
    time.sleep(0.5)
    assert not [pid for pid in (tmp_path / "pids").read_text().split() if _runs(int(pid))]


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def test_a_file_that_never_answers_keeps_what_was_read_before_it(machine: Path, monkeypatch: pytest.MonkeyPatch):
    release = threading.Event()
    read = Root.read

    def hanging(self: Root, path: str, *rest: object) -> bytes:
        if path.endswith("0000:1b:00.0/numa_node"):
            release.wait(60)
        return read(self, path, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(Root, "read", hanging)
    begun = time.monotonic()
    try:
        bundle = capture(root=str(machine), deadline_s=1.5)
    finally:
        release.set()
    assert time.monotonic() - begun < 1.5 + SLACK_S
    assert _items(bundle)["sys-pci", 0]["status"] == "timeout"
    assert "0000:1b:00.0/current_link_speed\t32.0 GT/s PCIe\n" in _text(bundle, "sys-pci")
    assert _items(bundle)["sys-net", 0]["status"] == "ok"


def test_a_probe_that_fails_is_its_own_result(machine: Path, monkeypatch: pytest.MonkeyPatch):
    def broken(_text: str) -> str:
        raise RuntimeError("no such luck")

    monkeypatch.setattr("topodiag_probes.items.cpu.one_per_socket", broken)
    bundle = capture(root=str(machine))
    item = _items(bundle)["sys-cpu", 0]
    assert (item["status"], item["why"]) == ("error", "RuntimeError: no such luck")
    assert "node0/cpulist\t0-1\n" in _text(bundle, "sys-cpu")
    assert _items(bundle)["sys-pci", 0]["status"] == "ok"


def test_counters_are_read_again_after_the_interval(machine: Path, tmp_path: Path):
    counter = machine / "sys/class/net/eth0/carrier_changes"
    seen: list[str] = []

    def flap(event: str, probe: str, _seconds: float) -> None:
        seen.append(probe)
        if event == "done" and probe == "sys-net":
            counter.write_text("4\n")

    bundle = capture(root=str(machine), sample_s=0.3, on_progress=flap)
    items = _items(bundle)
    shown = {name for name, sample in items if sample == 1}
    assert shown == {"sys-pci-aer", "sys-infiniband-counters", "sys-net-counters"}
    assert b"carrier_changes\t2\n" in bundle.files["trees/sys-net.tree"]
    assert b"carrier_changes\t4\n" in bundle.files["sample2/trees/sys-net-counters.tree"]
    first, second = bundle.manifest["samples"]
    assert (first["number"], second["number"]) == (0, 1)
    assert 0.3 <= second["interval_s"] < 10
    assert "sys-net-counters" in seen


def test_commands_with_counters_are_run_twice(stub, stubs: Path):
    stub("nvidia-smi", "echo link $2")
    bundle = capture(sample_s=0.1, extra_path=str(stubs), only=["nvidia-smi-nvlink-*"])
    assert bundle.files["sample2/commands/nvidia-smi-nvlink-e.txt"] == b"link -e\n"
    assert "sample2/commands/nvidia-smi-nvlink-s.txt" not in bundle.files


def test_only_what_was_asked_for_is_captured(machine: Path):
    bundle = capture(root=str(machine), only=["sys-*"])
    status = {name: item["status"] for (name, _), item in _items(bundle).items()}
    assert status["sys-pci"] == "ok"
    assert status["os-state"] == "skipped"


def test_progress_names_each_probe_once_begun_and_once_done(machine: Path):
    events: list[tuple[str, str]] = []
    capture(root=str(machine), on_progress=lambda event, probe, _seconds: events.append((event, probe)))
    names = sorted(probe.id for probe in probes())
    assert sorted(name for event, name in events if event == "start") == names
    assert sorted(name for event, name in events if event == "done") == names


def test_a_broken_spinner_costs_the_spinner(machine: Path):
    def broken(*_rest: object) -> None:
        raise ValueError("no terminal")

    assert _items(capture(root=str(machine), on_progress=broken))["sys-pci", 0]["status"] == "ok"


def test_a_relative_entry_of_the_search_path_runs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "ibstat").write_text("#!/bin/sh\necho trap\n")
    (tmp_path / "ibstat").chmod(0o755)
    monkeypatch.chdir(tmp_path)
    ctx = Context(Root(), Groups(), {"PATH": ".::bin"})
    assert all(os.path.isabs(part) for part in ctx.path.split(os.pathsep))


def test_commands_speak_the_language_that_the_sources_read(stub, stubs: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    stub("ibstat", "echo $LC_ALL")
    assert capture(extra_path=str(stubs), only=["ibstat"]).files["commands/ibstat.txt"] == b"C\n"


def test_what_root_would_add_is_said_to_a_user(stub, stubs: Path, monkeypatch: pytest.MonkeyPatch):
    stub("lspci", "echo 'Capabilities: <access denied>'")
    stub("dmesg", "echo Operation not permitted >&2; exit 1")
    monkeypatch.setattr(os, "getuid", lambda: 1000)
    bundle = capture(extra_path=str(stubs), only=["lspci", "dmesg", "ibstat"])
    items = _items(bundle)
    assert bundle.manifest["privilege"] == "user"
    assert [items[name, 0]["needs_root"] for name in ("lspci", "dmesg", "ibstat")] == [True, True, False]
    assert items["dmesg", 0]["status"] == "denied"


def test_ethtool_is_asked_about_interfaces_with_a_device(stub, stubs: Path, monkeypatch: pytest.MonkeyPatch):
    stub("ethtool", 'echo "$@"')
    monkeypatch.setattr("topodiag_probes.items.ethtool.interfaces", lambda ctx: ["eth0", "-x", "lo", "a b"])
    monkeypatch.setattr("topodiag_probes.items.ethtool.with_device", lambda ctx, name: name != "lo")
    bundle = capture(extra_path=str(stubs), only=["ethtool-S-*"])
    assert bundle.files == {"commands/ethtool-S-eth0.txt": b"-S eth0\n"}


def test_the_topology_file_that_nccl_would_read_is_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "topo.xml").write_text("<system version='1'/>")
    monkeypatch.setenv("NCCL_TOPO_FILE", str(tmp_path / "topo.xml"))
    bundle = capture(only=["nccl-topo-file"])
    assert bundle.files == {"files/nccl-topo-file.xml": b"<system version='1'/>"}


def test_the_archive_and_the_folder_read_back_the_same(machine: Path, tmp_path: Path):
    bundle = capture(root=str(machine))
    write_folder(bundle, str(tmp_path / "folder"))
    with (tmp_path / "host.tar.gz").open("wb") as file:
        write_tar(bundle, file)
    seen = [
        {blob.name.removeprefix(evidence.path + "/"): blob.data for blob in evidence.blobs}
        for evidence in (open_evidence(str(tmp_path / "folder")), open_evidence(str(tmp_path / "host.tar.gz")))
    ]
    assert seen[0] == seen[1]
    assert len(seen[0]) == len(bundle.files)


def test_the_same_bundle_gives_the_same_archive_with_nobody_in_its_headers():
    bundle = Bundle({"host": "gpu-001", "time": "2026-11-21T02:14:09Z"}, {"b/2": b"2", "a/1": b"1"})
    first, second = io.BytesIO(), io.BytesIO()
    write_tar(bundle, first)
    time.sleep(1.1)
    write_tar(bundle, second)
    assert first.getvalue() == second.getvalue()
    with tarfile.open(fileobj=io.BytesIO(first.getvalue())) as archive:
        members = archive.getmembers()
    assert [member.name for member in members] == ["manifest.json", "a/1", "b/2"]
    assert {(member.mode, member.uid, member.gid, member.uname) for member in members} == {(0o644, 0, 0, "")}


def test_the_sources_read_what_the_collector_writes(machine: Path):
    bundle = capture(root=str(machine))
    for blob in from_memory("live", bundle.manifest, bundle.files).blobs:
        source = registry.source(blob.item.kind) if blob.item else None
        if source is not None:
            parsed = source.parse(blob)
            assert parsed.unread == [], blob.name
            assert parsed.records, blob.name


def _in_memory(bundle: Bundle) -> Evidence:
    return from_memory("node", bundle.manifest, bundle.files)


def test_a_machine_without_proc_and_sys_is_one_of_which_nothing_is_known(tmp_path: Path):
    node = read_node(_in_memory(capture(root=str(tmp_path), extra_path=str(tmp_path)))).node
    assert not node.topics & {Topic.GPUS, Topic.DRIVER, Topic.PCI, Topic.RDMA_DEVICES, Topic.INTERFACES}
    sight = gpu_sight(node)
    assert (sight.sight, sight.why) == (Sight.UNREAD, "nvidia-smi -q -x: commands run on the live host only")


def test_of_a_machine_whose_kernel_is_seen_a_missing_tree_is_known_to_be_missing(machine: Path):
    shutil.rmtree(machine / "sys" / "class" / "infiniband", ignore_errors=True)
    node = read_node(_in_memory(capture(root=str(machine)))).node
    assert {Topic.PCI, Topic.RDMA_DEVICES} <= node.topics
    assert Topic.GPUS not in node.topics
