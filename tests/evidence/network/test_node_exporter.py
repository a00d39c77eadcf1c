"""Metrics of the node exporter are the facts of /sys/class/infiniband, for the same checks."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.evidence.filled import node_of, read, recognises
from topodiag.checks.nic.errors import NicPortErrors
from topodiag.checks.nic.rate import NicPortSlow
from topodiag.evidence.intake.hosts import host_of_text
from topodiag.evidence.interface import Blob
from topodiag.evidence.network.node_exporter import NodeExporter
from topodiag.model.finding import Status

TEXT = (Path(__file__).parents[2] / "fuzz" / "texts" / "node-exporter").read_text("utf-8")
HEALTHY = (
    TEXT.replace("2.5e+10", "5e+10").replace('mlx5_1",port="1"} 17', 'mlx5_1",port="1"} 0').replace("} 4411", "} 0")
)


def test_each_sample_becomes_the_fact_that_the_kernel_shows() -> None:
    node = node_of(TEXT)
    first, second = node.nics
    assert first.rdma_name == "mlx5_0"
    (port,) = second.ports
    assert (port.state.value, port.phys_state.value, port.rate_gbps.value) == ("ACTIVE", "LinkUp", 200.0)
    assert port.counters["link_downed"].first.value == 17
    assert port.counters["symbol_error"].first.value == 4411
    assert node.os.uptime_s.value == 10_000


def test_data_in_bytes_are_the_kernels_words() -> None:
    (port,) = node_of(TEXT).nics[0].ports
    assert port.counters["port_rcv_data"].first.value == 22031403016 // 4


def test_counters_of_the_hardware_have_the_kernels_names() -> None:
    text = TEXT + 'node_infiniband_packet_sequence_errors_total{device="mlx5_0",port="1"} 5\n'
    assert node_of(text).nics[0].ports[0].counters["packet_seq_err"].first.value == 5


@pytest.mark.parametrize(("check", "text"), [(NicPortSlow(), TEXT), (NicPortErrors(), TEXT)])
def test_the_checks_of_ports_judge_it(check: NicPortSlow | NicPortErrors, text: str) -> None:
    assert [finding.where.nics for finding in check.judge(node_of(text)).findings] == [("mlx5_1",)]
    assert check.judge(node_of(HEALTHY)).status is not Status.FINDING


def test_the_text_names_its_host() -> None:
    assert host_of_text(Blob("m", TEXT.encode())) == "gpu-7"


@pytest.mark.parametrize(
    "text", [TEXT, "# HELP node_arp_entries ARP entries\n", TEXT[TEXT.index("node_infiniband_i") :]]
)
def test_a_scrape_is_recognised(text: str) -> None:
    assert recognises("node-exporter", text)


def test_a_server_with_other_metrics_makes_no_node() -> None:
    _, parsed = read("node-exporter", "# HELP node_load1 1m load average.\nnode_load1 0.3\n")
    assert not parsed.records
    assert not parsed.unread


def test_metrics_of_several_hosts_are_no_one_node() -> None:
    def of(instance: str) -> str:
        return TEXT.replace("device=", f'instance="{instance}:9100",device=')

    _, parsed = read("node-exporter", of("n1") + of("n2"))
    assert not parsed.records
    assert "2 hosts" in parsed.unread[0].why


def test_two_scrapes_with_a_prompt_show_growth() -> None:
    later = TEXT.replace('mlx5_0",port="1"} 0', 'mlx5_0",port="1"} 3')
    command = "root@gpu-7:~# curl -s localhost:9100/metrics\n"
    node = node_of(command + TEXT + command + later)
    assert node.nics[0].ports[0].counters["link_downed"].delta == 3


@given(st.binary())
def test_any_bytes_are_read_without_an_exception(data: bytes) -> None:
    NodeExporter().parse(Blob("any", data))
