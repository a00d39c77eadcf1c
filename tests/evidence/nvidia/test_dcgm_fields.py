"""Metrics of the DCGM exporter are the same facts as the driver's tools say, for the same checks."""

from pathlib import Path

import pytest

from tests.evidence.filled import node_of, read, recognises
from topodiag.checks.gpu.lost import GpuLost
from topodiag.evidence.intake.same_node import host_of_text
from topodiag.evidence.interface import Blob
from topodiag.model.finding import Status
from topodiag.model.node import Node

TEXT = (Path(__file__).parents[2] / "fuzz" / "texts" / "dcgm-exporter").read_text("utf-8")
UUID = "GPU-0000000{}-c086-568a-9f1a-c1e1c934c44c"


def scrape(host: str = "n1", gpus: int = 8, **fields: dict[int, float | str]) -> str:
    """One scrape: by field, what each GPU shows beside a busy, healthy one."""
    usual: dict[str, float] = {"SM_CLOCK": 1980, "GPU_UTIL": 100, "XID_ERRORS": 0, "ROW_REMAP_FAILURE": 0}
    lines = []
    for name in dict.fromkeys((*usual, *fields)):
        for gpu in range(gpus):
            value = fields.get(name, {}).get(gpu, usual.get(name, 0))
            labels = f'gpu="{gpu}",UUID="{UUID.format(gpu)}",pci_bus_id="00000000:{gpu + 1}0:00.0",Hostname="{host}"'
            lines.append(f'DCGM_FI_DEV_{name}{{{labels},modelName="NVIDIA H100 80GB HBM3"}} {value}')
    return "\n".join(lines) + "\n"


def test_the_text_names_its_host() -> None:
    assert host_of_text(Blob("m", TEXT.encode())) == "n1"


@pytest.mark.parametrize("name", ["nvidia-dcgm-exporter-x7zkq", "0f3a9be2c811"])
def test_the_name_of_a_container_is_no_host(name: str) -> None:
    assert host_of_text(Blob("m", scrape(name).encode())) == ""


@pytest.mark.parametrize("text", [TEXT, scrape(), "   " + scrape(gpus=1)])
def test_a_scrape_is_recognised(text: str) -> None:
    assert recognises("dcgm-exporter", text)


@pytest.mark.parametrize("blank", ["9223372036854775794", "2147483632", "2.147483632e+09", "140737488355328"])
def test_what_a_gpu_does_not_have_is_no_count(blank: str) -> None:
    node = node_of(scrape(ECC_DBE_VOL_TOTAL=dict.fromkeys(range(8), blank)))
    assert all("ecc_volatile_uncorrected" not in gpu.counters for gpu in node.gpus)


def test_lines_of_some_gpus_do_not_make_the_others_lost() -> None:
    assert GpuLost().judge(node_of(scrape(gpus=3))).status is Status.CLEAN


def test_of_several_scrapes_the_last_counts() -> None:
    node = node_of(scrape(SM_CLOCK={2: 345}) + scrape())
    assert node.gpus[2].sm_clock_mhz.value == 1980


def test_parts_of_a_gpu_and_switches_are_left_aside() -> None:
    part = scrape(gpus=1).replace('Hostname="n1"', 'Hostname="n1",GPU_I_PROFILE="1g.10gb",GPU_I_ID="7"')
    assert not read("dcgm-exporter", part)[1].records


def test_totals_of_links_are_said_not_to_name_them() -> None:
    node = node_of(TEXT)
    assert any("NVLinks" in gap.what for gap in node.not_observed)
    assert not any("NVLinks" in gap.what for gap in node_of(scrape()).not_observed)


def test_metrics_of_several_hosts_are_no_one_node() -> None:
    _, parsed = read("dcgm-exporter", scrape("n1") + scrape("n2"))
    assert not parsed.records
    assert "2 hosts" in parsed.unread[0].why


def test_two_texts_of_one_machine_are_one_node() -> None:
    node: Node = node_of(TEXT, f"GPU 0: NVIDIA H100 80GB HBM3 (UUID: {UUID.format(0)})\n")
    assert len(node.gpus) == 2
