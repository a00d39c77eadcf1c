"""`topodiag emit nccl-topo` as users run it."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from pathlib import Path

import pytest

from tests import program
from tests.tables import examples
from topodiag.cli import cli
from topodiag.cli.emit.nccl_topo import nccl_topo
from topodiag.cli.errors import run as run_inside
from topodiag.emit.nccl_xml import to_text
from topodiag.evidence.nccl_xml import read_file
from topodiag.model.nccl_tree import Element

GUEST = "fixture:vm-flat-pci"
FIXTURES = Path(__file__).parents[2] / "fixtures" / "nodes"
HOST = "fixture:dgx-h100-healthy"
COMPUTE = (0, 3, 4, 5, 6, 9, 10, 11)
PAIRS = ",".join([*(f"GPU{at}=GPU{at}" for at in range(8)), *(f"mlx5_ib{a}=mlx5_{b}" for a, b in enumerate(COMPUTE))])


@pytest.fixture
def topodiag():
    """The real program: what it makes is what is tested."""

    def run(*args, **kwargs):
        return program.run(*args, env={"COLUMNS": "120"}, **kwargs)

    return run


def element(tag: str, *children: Element, **attributes: object) -> Element:
    return Element(tag, tuple((name.rstrip("_"), str(value)) for name, value in attributes.items()), children)


def gpu(bus: str, dev: int, links: int = 18, **more: object) -> Element:
    nvlinks = [element("nvlink", target="fffffff:ffff:ff", count=links, tclass="0x068000")] if links else []
    function = {"class_": "0x030200", "link_speed": "32.0 GT/s PCIe", "link_width": 16}
    return element("pci", element("gpu", *nvlinks, dev=dev, sm=90, gdr=1, **more), busid=bus, **function)


def cpu(*below: Element, **more: object) -> Element:
    x86 = {"arch": "x86_64", "vendor": "GenuineIntel", "familyid": 6, "modelid": 143}
    return element("cpu", *below, numaid=0, affinity="ffff", **x86, **more)


def written(path: Path, *cpus: Element) -> str:
    path.write_text(to_text(element("system", *cpus, version=1)))
    return str(path)


def no_nvlink_on_gpu3(path: Path) -> str:
    return written(path, cpu(*(gpu(f"0000:{at + 1:02x}:00.0", at, 0 if at == 3 else 18) for at in range(8))))


def one_line(run) -> str:
    """The one line of an error, without its hint."""
    assert run.returncode == 2, run.stderr
    assert run.stdout == ""
    assert "Traceback" not in run.stderr
    lines = [line for line in run.stderr.splitlines() if not line.startswith("  hint: ")]
    assert len(lines) == 1, run.stderr
    return lines[0].removeprefix("topodiag: error: ")


def test_the_file_goes_to_standard_output_and_the_account_to_standard_error(topodiag) -> None:
    run = topodiag("emit", "nccl-topo", HOST)
    assert run.returncode == 0
    assert run.stdout.startswith('<system version="1">\n')
    assert read_file(run.stdout.encode(), "out").refusals == ()
    assert "NCCL 2.28 loads it" in run.stderr
    assert "1 node, 8 GPUs" in run.stderr
    assert "2 nodes, 16 GPUs" in run.stderr


def test_what_it_writes_it_takes_as_its_input_and_changes_no_more(topodiag, tmp_path) -> None:
    first = topodiag("emit", "nccl-topo", HOST, "-o", "a.xml", "--nodes", "1", cwd=tmp_path)
    assert first.returncode == 0
    assert f"  NCCL_TOPO_FILE={tmp_path / 'a.xml'}\n" in first.stderr, "jobs start elsewhere: the whole path"
    assert first.stdout == ""
    again = topodiag("emit", "nccl-topo", str(tmp_path / "a.xml"), "--nodes", "1")
    assert again.stdout == (tmp_path / "a.xml").read_text()
    assert "left out" not in again.stderr


def test_a_repair_is_told_with_its_gain_and_what_still_wants_attention(topodiag, tmp_path) -> None:
    sick = no_nvlink_on_gpu3(tmp_path / "sick.xml")
    run = topodiag("emit", "nccl-topo", sick, "--repair", "--nodes", "1")
    assert run.returncode == 0
    assert "GPU3: 0 NVLinks to NVSwitches restored to 18" in run.stderr
    assert "times as fast)" in run.stderr
    assert "the hardware fault remains: NVLinks of GPU3 are down" in run.stderr
    assert run.stdout.count("<nvlink ") == 8
    assert topodiag("emit", "nccl-topo", sick).stdout.count("<nvlink ") == 7, "without --repair nothing is mended"


def test_a_file_that_would_make_things_worse_is_refused_unless_forced(topodiag, tmp_path) -> None:
    out = tmp_path / "g5.xml"
    args = ("emit", "nccl-topo", HOST, "--instance", "g5.48xlarge", "--nodes", "2", "-o", str(out))
    run = topodiag(*args)
    assert run.returncode == 1
    assert "not written: it would make things worse" in " ".join(run.stderr.split())
    assert " of 1 GiB takes " in run.stderr
    assert "--force writes it all the same" in run.stderr
    assert not out.exists()
    assert topodiag(*args, "--force").returncode == 0
    assert out.exists()


def test_what_the_checks_still_find_in_the_file_is_told(topodiag, tmp_path) -> None:
    run = topodiag("emit", "nccl-topo", no_nvlink_on_gpu3(tmp_path / "sick.xml"), "--nodes", "1")
    assert run.returncode == 0
    assert "still in it  TOP004: GPU3 has 0 NVLinks" in run.stderr
    assert "1 node, 8 GPUs: no difference" in run.stderr


def test_what_nccl_refuses_is_compared_too(topodiag, tmp_path) -> None:
    good = no_nvlink_on_gpu3(tmp_path / "good.xml")
    (tmp_path / "bad.xml").write_text('<?xml version="1.0"?>\n' + Path(good).read_text())
    run = topodiag("emit", "nccl-topo", str(tmp_path / "bad.xml"), "--nodes", "1")
    assert run.returncode == 0
    assert "as it is NCCL refuses it" in run.stderr
    assert run.stdout == Path(good).read_text()


def clique(path: Path) -> str:
    """The dump of two hosts of one NVLink domain, four GPUs each."""
    hosts = [
        cpu(*(gpu(f"0000:{at + 1:02x}:00.0", at, rank=host * 4 + at) for at in range(4)), host_hash=hex(0xA0 + host))
        for host in range(2)
    ]
    return written(path, *hosts)


def test_one_host_is_cut_out_of_a_dump_of_several_and_compared_with_itself(topodiag, tmp_path) -> None:
    dump = clique(tmp_path / "clique.xml")
    run = topodiag("emit", "nccl-topo", dump)
    assert run.returncode == 0
    assert "cut host 0xa0 out of a dump of 2 hosts" in run.stderr
    assert "1 node, 4 GPUs" in run.stderr
    assert (run.stdout.count("<gpu "), "host_hash" in run.stdout, "rank=" in run.stdout) == (4, False, False)
    other = topodiag("emit", "nccl-topo", dump, "--host", "0xa1")
    assert other.stdout == run.stdout
    wrong = topodiag("emit", "nccl-topo", dump, "--host", "0xff")
    assert "no host 0xff in this file; there are 0xa0, 0xa1" in one_line(wrong)


@pytest.mark.parametrize("version", ["2.18", "2.21.5", "2.26", "2.30", "2.31", "2.32"])
def test_the_file_is_made_for_the_version_that_is_asked_for(topodiag, tmp_path, version) -> None:
    sick = no_nvlink_on_gpu3(tmp_path / "sick.xml")
    run = topodiag("emit", "nccl-topo", sick, "--repair", "--nccl", version, "--nodes", "1")
    assert run.returncode == 0, run.stderr
    assert f"NCCL {version} loads it" in run.stderr


def test_a_guest_gets_the_switches_of_its_instance_type(topodiag) -> None:
    run = topodiag("emit", "nccl-topo", GUEST, "--instance", "Standard_ND96isr_H100_v5", "--nodes", "2")
    assert run.returncode == 0
    assert "took the places of ND96isr_H100_v5" in run.stderr
    assert "put in 8 switches with bus ids that the guest does not have" in run.stderr
    assert run.stdout.count('busid="ffff:ff:') == 8
    assert "times as fast)" in run.stderr


def test_the_instance_type_of_a_guest_is_the_one_that_its_parts_show(topodiag) -> None:
    named = topodiag("emit", "nccl-topo", GUEST, "--instance", "ND96isr_H100_v5")
    inferred = topodiag("emit", "nccl-topo", GUEST)
    assert inferred.stdout == named.stdout
    assert "those of ND96isr_H100_v5 (--instance for another)" in " ".join(inferred.stderr.split())


def test_a_guest_of_an_unknown_provider_gets_no_check_mark_for_a_file_that_changes_nothing(topodiag, tmp_path) -> None:
    guest = tmp_path / "guest"
    shutil.copytree(FIXTURES / "vm-flat-pci", guest)
    for path in guest.rglob("*"):
        if path.is_file() and "Microsoft" in (text := path.read_text(errors="surrogateescape")):
            path.write_text(text.replace("Microsoft Corporation", "ACME"), errors="surrogateescape")
    content = " ".join(topodiag("emit", "nccl-topo", str(guest)).stderr.split())
    assert content.startswith("▲ the topology file NCCL 2.28 loads it, and decides as it does without it")
    assert "name the instance type (--instance NAME)" in content


def test_a_file_that_changes_nothing_on_a_machine_of_its_own_says_so(topodiag) -> None:
    assert topodiag("emit", "nccl-topo", HOST).stderr.startswith("= the topology file")


def test_a_bare_file_holds_the_places_and_leaves_the_devices_to_nccl(topodiag) -> None:
    run = topodiag("emit", "nccl-topo", GUEST, "--instance", "ND96isr_H100_v5", "--nodes", "2", "--bare")
    assert run.returncode == 0, run.stderr
    tree = read_file(run.stdout.encode(), "bare.xml").tree
    assert {node.tag for node in tree.walk()} == {"system", "cpu", "pci"}
    groups = [{pci.get("busid") for pci in switch.children} for numa in tree.children for switch in numa.children]
    assert groups == [{f"{at:04x}:00:00.0", f"{at + 0x100:04x}:00:00.0"} for at in range(1, 9)], "as Azure pairs them"
    assert "times as fast)" in run.stderr, "judged with the devices that NCCL will find"
    assert "leaves NVLinks to NCCL" in one_line(topodiag("emit", "nccl-topo", GUEST, "--bare", "--repair"))


def test_gpudirect_that_stands_in_the_file_as_off_is_told(topodiag, tmp_path) -> None:
    good = topodiag("emit", "nccl-topo", HOST, "--nodes", "1")
    assert "GPUDirect" not in good.stderr
    (tmp_path / "off.xml").write_text(good.stdout.replace('gdr="1"', 'gdr="0"'))
    run = topodiag("emit", "nccl-topo", str(tmp_path / "off.xml"), "--nodes", "1")
    assert "GPUDirect RDMA stands in it as off (gdr)" in run.stderr


@pytest.mark.parametrize("as_file", [False, True])
def test_a_guest_gets_the_switches_of_its_host(topodiag, tmp_path, as_file) -> None:
    pairs = PAIRS
    if as_file:
        (tmp_path / "map.csv").write_text(PAIRS.replace(",", "\n").replace("=", ","))
        pairs = str(tmp_path / "map.csv")
    run = topodiag("emit", "nccl-topo", GUEST, "--host-capture", HOST, "--pairs", pairs, "--nodes", "2")
    assert run.returncode == 0, run.stderr
    assert "took the places of 16 devices from the host's capture (as mapped)" in run.stderr
    assert '<net name="mlx5_ib7"' in run.stdout
    assert 'busid="0000:' not in run.stdout, "no bus id of the host is left in the guest's file"


def test_a_guest_s_dump_does_as_well_as_its_bundle(topodiag, tmp_path) -> None:
    bundle = topodiag("emit", "nccl-topo", GUEST, "--instance", "ND96isr_H100_v5", "--nodes", "1").stdout
    (tmp_path / "dump.xml").write_text(topodiag("emit", "nccl-topo", GUEST, "--nodes", "1").stdout)
    dump = topodiag(
        "emit", "nccl-topo", str(tmp_path / "dump.xml"), "--instance", "ND96isr_H100_v5", "--nodes", "1"
    ).stdout
    assert dump.count("<pci ") == bundle.count("<pci ")


def test_a_guest_s_devices_are_grouped_by_what_was_measured(topodiag, tmp_path) -> None:
    rows = ["GB/s," + ",".join(f"mlx5_ib{nic}" for nic in range(8))]
    rows += [f"GPU{gpu}," + ",".join("48" if gpu == nic else "20" for nic in range(8)) for gpu in range(8)]
    (tmp_path / "m.csv").write_text("\n".join(rows))
    run = topodiag("emit", "nccl-topo", GUEST, "--affinity", str(tmp_path / "m.csv"), "--nodes", "2")
    assert run.returncode == 0, run.stderr
    assert "made 8 groups of GPUs and NICs by what was measured" in run.stderr


def test_a_flat_guest_with_more_devices_than_an_old_parser_takes_below_one_processor(topodiag, tmp_path) -> None:
    devices = [gpu(f"0001:{at + 1:02x}:00.0", at) for at in range(8)]
    for at in range(32):
        net = element("net", name=f"rdmap{at}s0", dev=at, speed=100000, port=1, guid=hex(0x100 + at), gdr=1)
        function = {"busid": f"0002:{at + 1:02x}:00.0", "class_": "0x020000", "link_speed": "", "link_width": 0}
        devices.append(element("pci", element("nic", net), **function))
    flat = written(tmp_path / "p5.xml", cpu(*devices))
    assert "has 40 children, and NCCL takes 32" in one_line(topodiag("emit", "nccl-topo", flat, "--nccl", "2.18"))
    run = topodiag("emit", "nccl-topo", flat, "--nccl", "2.18", "--instance", "p5.48xlarge", "--nodes", "1")
    assert run.returncode == 0, run.stderr
    assert run.stdout.count("<net ") == 32


@examples("args", "message")
def test_each_bad_input_is_told_in_one_line(capsys, monkeypatch, tmp_path, args, message) -> None:
    monkeypatch.chdir(tmp_path)
    code = run_inside(cli, ["emit", "nccl-topo", *args])  # in this process: twenty starts would take their time
    captured = capsys.readouterr()
    assert message in one_line(subprocess.CompletedProcess(args, code, captured.out, captured.err))


def test_a_near_name_of_an_instance_type_is_suggested(topodiag) -> None:
    run = topodiag("emit", "nccl-topo", GUEST, "--instance", "ND96isr_H100_v6")
    assert "hint: did you mean ND96isr_H100_v5" in run.stderr


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_the_right_to_write_is_told_before_the_work(topodiag, tmp_path) -> None:
    tmp_path.chmod(stat.S_IRUSR | stat.S_IXUSR)
    assert "permission denied" in one_line(topodiag("emit", "nccl-topo", HOST, "-o", str(tmp_path / "t.xml")))


def test_an_existing_file_is_replaced_only_by_a_whole_one(topodiag, tmp_path) -> None:
    out = tmp_path / "topo.xml"
    out.write_text("kept")
    assert topodiag("emit", "nccl-topo", "fixture:no-gpu", "-o", str(out)).returncode == 2
    assert out.read_text() == "kept"
    assert topodiag("emit", "nccl-topo", HOST, "-o", str(out), "--nodes", "1").returncode == 0
    assert out.read_text().startswith("<system ")


def test_every_option_is_in_the_guide() -> None:
    guide = (Path(__file__).parents[2] / "docs" / "emit.md").read_text()
    options = [param.opts for param in nccl_topo.params if param.opts[0].startswith("-")]
    texts = [names for names in options if any(f"{name}{end}" in guide for name in names for end in " `")]
    assert texts == options
