"""Topology files: topo, emit nccl-topo, NICs of two ports."""

import json
import os
import re
import shutil
import stat
from collections.abc import Callable, Sequence
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from tests import program
from tests.nccl.small_trees import GEN4, GEN5, cpu, element, gpu, host, nvlink, pci
from tests.nccl.topo.test_infer_instance import NDV5, cloud
from tests.tables import examples
from topodiag.emit.nccl_xml import to_text
from topodiag.evidence.nccl_xml import read_file
from topodiag.model.nccl_tree import Element

FOLDER = Path(__file__).resolve().parents[2] / "fixtures" / "topo"
HEALTHY = str(FOLDER / "dgx-h100-healthy" / "topo.xml")
SICK = str(FOLDER / "gpu-without-nvlink" / "topo.xml")


def topo(*args, **kwargs):
    return program.run("topo", *args, **kwargs)


def refused(done, *words):
    assert done.returncode == 2, done.stdout
    assert not done.stdout
    said = done.stderr.splitlines()
    assert said[0].startswith("topodiag: error: ")
    assert len(said) <= 2
    assert "Traceback" not in done.stderr
    for word in words:
        assert word in done.stderr


def test_diff_of_equal_machines_exits_0_whatever_differs_by_nature(tmp_path):
    other = tmp_path / "other.xml"
    other.write_text(Path(HEALTHY).read_text().replace('guid="0x', 'guid="0x1'))
    done = topo("diff", HEALTHY, str(other))
    assert done.returncode == 0
    assert "no difference that matters to communication, in what was compared" in done.stdout
    assert "left and right do not say how links trained" in " ".join(done.stdout.split())


def test_standard_input_is_a_file_like_any_other():
    with open(HEALTHY) as file:
        done = topo("check", "-", stdin=file)
    assert done.returncode == 0
    assert "no faults found" in done.stdout


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('<system version="1"><cpu numaid="0">' + "<pci>" * 10_000, "nests deeper"),
        ('<?xml version="1.0"?><!DOCTYPE system [<!ENTITY a "b">]><system version="1"><cpu numaid="0"/></system>', ""),
        ('<system version="1"><cpu numaid="' + "x" * (9 << 20) + '"/></system>', "larger than 8 MiB"),
        ("<html><body>404</body></html>", "unknown file type"),
        ("", "is empty"),
    ],
    ids=["deep", "entities", "large", "html", "empty"],
)
def test_hostile_and_foreign_files_are_refused(tmp_path, text, words):
    (tmp_path / "topo.xml").write_text(text)
    refused(topo("check", str(tmp_path / "topo.xml")), words)


def test_azures_file_without_gpus_is_predicted_and_one_of_nobody_asks_for_the_machine(tmp_path):
    (tmp_path / "ndv5.xml").write_text(to_text(cloud(NDV5, GEN5)))
    text = " ".join(topo("predict", str(tmp_path / "ndv5.xml"), "--nodes", "2").stdout.split())
    assert "those of ND96isr_H100_v5: H100 80GB HBM3" in text
    assert "not followed: symmetric kernels" in text
    (tmp_path / "other.xml").write_text(to_text(cloud(NDV5, GEN4)))
    refused(topo("predict", str(tmp_path / "other.xml")), "--system")


# --- `topodiag emit nccl-topo` as users run it


GUEST = "fixture:vm-flat-pci"
FIXTURES = Path(__file__).parents[2] / "fixtures" / "nodes"
HOST = "fixture:dgx-h100-healthy"


@pytest.fixture
def topodiag():
    """The real program: what it makes is what is tested."""

    def run(*args, **kwargs):
        return program.run(*args, env={"COLUMNS": "120"}, **kwargs)

    return run


def one_line(run) -> str:
    """The one line of an error, without its hint."""
    assert run.returncode == 2, run.stderr
    assert run.stdout == ""
    assert "Traceback" not in run.stderr
    lines = [line for line in run.stderr.splitlines() if not line.startswith("  hint: ")]
    assert len(lines) == 1, run.stderr
    return lines[0].removeprefix("topodiag: error: ")


def test_a_guest_of_an_unknown_provider_gets_no_check_mark_for_a_file_that_changes_nothing(topodiag, tmp_path) -> None:
    guest = tmp_path / "guest"
    shutil.copytree(FIXTURES / "vm-flat-pci", guest)
    for path in guest.rglob("*"):
        if path.is_file() and "Microsoft" in (text := path.read_text(errors="surrogateescape")):
            path.write_text(text.replace("Microsoft Corporation", "ACME"), errors="surrogateescape")
    content = " ".join(topodiag("emit", "nccl-topo", str(guest)).stderr.split())
    assert content.startswith("▲ the topology file NCCL 2.28 loads it, and decides as it does without it")
    assert "name the instance type (--instance NAME)" in content


def test_a_bare_file_holds_the_places_and_leaves_the_devices_to_nccl(topodiag) -> None:
    run = topodiag("emit", "nccl-topo", GUEST, "--instance", "ND96isr_H100_v5", "--nodes", "2", "--bare")
    assert run.returncode == 0, run.stderr
    tree = read_file(run.stdout.encode(), "bare.xml").tree
    assert {node.tag for node in tree.walk()} == {"system", "cpu", "pci"}
    groups = [{pci.get("busid") for pci in switch.children} for numa in tree.children for switch in numa.children]
    assert groups == [{f"{at:04x}:00:00.0", f"{at + 0x100:04x}:00:00.0"} for at in range(1, 9)], "as Azure pairs them"
    assert "times as fast)" in run.stderr, "judged with the devices that NCCL will find"
    assert "leaves NVLinks to NCCL" in one_line(topodiag("emit", "nccl-topo", GUEST, "--bare", "--repair"))


def test_a_guest_s_dump_does_as_well_as_its_bundle(topodiag, tmp_path) -> None:
    bundle = topodiag("emit", "nccl-topo", GUEST, "--instance", "ND96isr_H100_v5", "--nodes", "1").stdout
    (tmp_path / "dump.xml").write_text(topodiag("emit", "nccl-topo", GUEST, "--nodes", "1").stdout)
    dump = topodiag(
        "emit", "nccl-topo", str(tmp_path / "dump.xml"), "--instance", "ND96isr_H100_v5", "--nodes", "1"
    ).stdout
    assert dump.count("<pci ") == bundle.count("<pci ")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_the_right_to_write_is_told_before_the_work(topodiag, tmp_path) -> None:
    tmp_path.chmod(stat.S_IRUSR | stat.S_IXUSR)
    assert "permission denied" in one_line(topodiag("emit", "nccl-topo", HOST, "-o", str(tmp_path / "t.xml")))


# --- NICs with two ports in each command: as fast as one NIC of both rates, and no faster (NCCL merges the ports)


Run = Callable[..., CompletedProcess[str]]
SWITCHES = nvlink("fffffff:ffff:ff", 18)
NCCL = ("--nccl", "2.32.3", "--nodes", "2")


def port(number: int, mbps: int, guid: int, at: int = 1) -> Element:
    return element("nic", element("net", name=f"mlx5_{number}", dev=number, speed=mbps, port=at, guid=hex(guid), gdr=1))


def function(bus: str, below: Element) -> Element:
    return element("pci", below, busid=bus, class_="0x020700", link_speed=GEN5, link_width=16)


def one_port(slot: int) -> list[Element]:
    return [function(f"0000:{slot + 0x50:x}:00.0", port(slot, 400000, slot + 1))]


def two_functions(slot: int) -> list[Element]:
    """ConnectX-7 with two ports: a function for each, of one adapter."""
    return [function(f"0000:{slot + 0x50:x}:00.{at}", port(2 * slot + at, 200000, slot + 1, at + 1)) for at in range(2)]


def machine(folder: Path, nics: Callable[[int], Sequence[Element]], count: int = 8) -> str:
    """Eight Hopper GPUs with NVSwitches; a switch of PCIe for each GPU, with its NIC where there are so many."""
    slots = [
        pci(
            f"{slot + 0x10:x}",
            *(nics(slot) if slot < count else ()),
            gpu(f"{slot + 0x30:x}", SWITCHES, sm=90, speed=GEN5, dev=slot, rank=slot, gdr=1),
            speed=GEN5,
        )
        for slot in range(8)
    ]
    path = folder / f"{nics.__name__[:3]}.xml"  # names as long as each other: pages break at the same words
    path.write_text(to_text(host(cpu(0, *slots[:4]), cpu(1, *slots[4:]))))
    return str(path)


@pytest.fixture
def machines(tmp_path: Path) -> tuple[str, str]:
    return machine(tmp_path, one_port), machine(tmp_path, two_functions)


def figures(text: str) -> list[str]:
    """The numbers of a page, without the names of files and NICs."""
    return re.findall(r"\d[\d.,]*\d|\d", re.sub(r"\S*\.xml|mlx5_\S+", "", text))


def test_a_prediction_has_the_bandwidth_of_both_ports_once(topodiag: Run, machines: tuple[str, str]) -> None:
    whole, ports = (
        json.loads(topodiag("topo", "predict", file, *NCCL, "--format", "json").stdout) for file in machines
    )
    for made in (whole, ports):
        for graph in made["graphs"]:
            graph.pop("orders", None)
    assert [graph["bw_inter"] for graph in ports["graphs"]] == [graph["bw_inter"] for graph in whole["graphs"]]
    assert (ports["graphs"], ports["channels"]) == (whole["graphs"], whole["channels"])
    assert [nic["name"] for nic in ports["virtual_nics"]] == [f"mlx5_{at}+mlx5_{at + 1}" for at in range(0, 16, 2)]
    assert {nic["gbs"] for nic in ports["virtual_nics"]} == {50.0}
    assert whole["virtual_nics"] == []


@examples("command")
def test_prices_and_layouts_are_those_of_one_nic_with_both_rates(
    topodiag: Run, machines: tuple[str, str], command: tuple[str, ...]
) -> None:
    whole, ports = (topodiag(*(file if word == "FILE" else word for word in command)) for file in machines)
    assert ports.returncode == whole.returncode < 2, ports.stderr
    assert figures(ports.stdout) == figures(whole.stdout)


def test_a_lost_port_costs_half_of_its_nic(topodiag: Run, machines: tuple[str, str]) -> None:
    whole, ports = machines
    half = topodiag("topo", "what-if", ports, *NCCL, "--remove", "nic:mlx5_1", "-q")
    slow = topodiag("topo", "what-if", whole, *NCCL, "--rate", "mlx5_0=200", "-q")
    assert figures(half.stdout) == figures(slow.stdout)[1:]  # without `200` of the change itself
    process = topodiag("topo", "what-if", ports, *NCCL, "--remove", "mlx5_0+mlx5_1", "-q")
    other = topodiag("topo", "what-if", whole, *NCCL, "--remove", "mlx5_0", "-q")
    assert figures(process.stdout) == figures(other.stdout)


def test_a_check_has_nothing_against_two_ports(topodiag: Run, machines: tuple[str, str]) -> None:
    for file in machines:
        done = topodiag("topo", "check", file, "--format", "json")
        assert (done.returncode, json.loads(done.stdout)["findings"]) == (0, [])


def test_files_and_pictures_hold_both_ports(topodiag: Run, machines: tuple[str, str], tmp_path: Path) -> None:
    _, ports = machines
    process = topodiag("emit", "nccl-topo", ports, "-o", str(tmp_path / "made.xml"))
    assert process.returncode == 0, process.stderr
    assert (tmp_path / "made.xml").read_text().count("<net ") == 16
    assert topodiag("emit", "picture", ports, "-o", str(tmp_path / "made.svg")).returncode == 0
    drawn = (tmp_path / "made.svg").read_text()
    assert all(f"mlx5_{number}" in drawn for number in range(16))


def test_a_list_of_ports_leaves_what_it_names(topodiag: Run, machines: tuple[str, str]) -> None:
    _, ports = machines
    firsts = "=" + ",".join(f"mlx5_{number}" for number in range(0, 16, 2))
    done = topodiag("topo", "predict", ports, *NCCL, "--env", f"NCCL_IB_HCA={firsts}", "--format", "json")
    document = json.loads(done.stdout)
    assert (document["virtual_nics"], document["assumed"]) == ([], [])
    assert document["graphs"][0]["channels"] * document["graphs"][0]["bw_inter"] == 8 * 24
    other = topodiag("topo", "predict", ports, *NCCL, "--env", "NCCL_IB_HCA=ibp9")
    assert "takes none of the NICs" in " ".join(other.stdout.split())
