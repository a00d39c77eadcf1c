"""Files that the sessions of commands are given, where a text alone would be long: each builder writes one, or a folder."""

# ruff: noqa: E501 - rows as wide as nccl-tests prints them

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

from tests.cli.small_log import log
from tests.evidence.layout.test_job_file import CONFIG, DEEPSPEED, MEGATRON
from tests.evidence.live.test_ras import status
from tests.nccl.small_trees import element
from tests.nccl_tests import table
from tests.shown import ROOT
from topodiag.emit.nccl_xml import to_text
from topodiag.model.nccl_tree import Element


def gpu(bus: str, dev: int, links: int = 18, **more: object) -> Element:
    nvlinks = [element("nvlink", target="fffffff:ffff:ff", count=links, tclass="0x068000")] if links else []
    function = {"class_": "0x030200", "link_speed": "32.0 GT/s PCIe", "link_width": 16}
    return element("pci", element("gpu", *nvlinks, dev=dev, sm=90, gdr=1, **more), busid=bus, **function)


def cpu(*below: Element, **more: object) -> Element:
    x86 = {"arch": "x86_64", "vendor": "GenuineIntel", "familyid": 6, "modelid": 143}
    return element("cpu", *below, numaid=0, affinity="ffff", **x86, **more)


def topology(path: Path, *cpus: Element, head: str = "") -> None:
    path.write_text(head + to_text(element("system", *cpus, version=1)))


def no_nvlink_on_gpu3(path: Path, head: str = "") -> None:
    topology(path, cpu(*(gpu(f"0000:{at + 1:02x}:00.0", at, 0 if at == 3 else 18) for at in range(8))), head=head)


def clique(path: Path) -> None:
    """The dump of two hosts of one NVLink domain, four GPUs each."""
    topology(path, *(
        cpu(*(gpu(f"0000:{at + 1:02x}:00.0", at, rank=host * 4 + at) for at in range(4)), host_hash=hex(0xA0 + host))
        for host in range(2)
    ))  # fmt: skip


def flat_p5(path: Path) -> None:
    """A guest with 8 GPUs and 32 NICs right below one processor."""
    devices = [gpu(f"0001:{at + 1:02x}:00.0", at) for at in range(8)]
    for at in range(32):
        net = element("net", name=f"rdmap{at}s0", dev=at, speed=100000, port=1, guid=hex(0x100 + at), gdr=1)
        function = {"busid": f"0002:{at + 1:02x}:00.0", "class_": "0x020000", "link_speed": "", "link_width": 0}
        devices.append(element("pci", element("nic", net), **function))
    topology(path, cpu(*devices))


def affinity(path: Path) -> None:
    """What was measured from each of 8 GPUs to each of 8 NICs: its own is the fastest."""
    rows = ["GB/s," + ",".join(f"mlx5_ib{nic}" for nic in range(8))]
    rows += [f"GPU{at}," + ",".join("48" if at == nic else "20" for nic in range(8)) for at in range(8)]
    path.write_text("\n".join(rows))


def node_with(path: Path, *lines: str) -> None:
    """A captured node with these lines in its settings: `environ` or `etc/nccl.conf`, a tab, and the line."""
    shutil.copytree(ROOT / "fixtures" / "nodes" / "dgx-h100-healthy", path)
    with (path / "trees" / "settings.tree").open("a") as tree:
        tree.writelines(f"= {line}\n" for line in lines)


def run_of(path: Path, beta: float, ranks: int = 8, hosts: int = 1, gpu: str = "NVIDIA H100 80GB HBM3") -> None:
    path.write_text(table(beta, ranks=ranks, hosts=hosts, gpu=gpu))


def steps(path: Path) -> None:
    """A log of steps of a training."""
    line = "iteration {}/ 5000 | elapsed time per iteration (ms): {}.0 | global batch size: 512 | lm loss: 2.3E+00 |\n"
    path.write_text("".join(line.format(at, 5400 + at * 37 % 90) for at in range(1, 60)))


def hung_answers(path: Path) -> None:
    """Two answers of RAS, ten seconds apart, in which rank 5 stays behind."""
    path.mkdir()
    for number in range(2):
        (path / f"answer{number}.json").write_text(json.dumps(status(8, 5, stamp=f"2026-11-22 08:19:{10 + number}0")))


BUILDERS: dict[str, Callable[..., object]] = {
    "no_nvlink_on_gpu3": no_nvlink_on_gpu3, "clique": clique, "flat_p5": flat_p5, "affinity": affinity, "hung_answers": hung_answers, "run": run_of,
    "node_with": node_with, "steps": steps, "small_log": lambda path: path.write_text(log()), "folder": Path.mkdir,
    "pipe": os.mkfifo, "megatron": lambda path: path.write_text(MEGATRON), "config": lambda path: path.write_text(CONFIG),
    "deepspeed": lambda path: path.write_text(DEEPSPEED),
}  # fmt: skip
