"""Metrics of the node exporter are the facts of /sys/class/infiniband, for the same checks."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.evidence.filled import node_of, read
from topodiag.checks.nic.errors import NicPortErrors
from topodiag.checks.nic.rate import NicPortSlow
from topodiag.evidence.intake.hosts import host_of_text
from topodiag.evidence.interface import Blob
from topodiag.model.finding import Status

TEXT = (Path(__file__).parents[2] / "fuzz" / "texts" / "node-exporter").read_text("utf-8")
HEALTHY = (
    TEXT.replace("2.5e+10", "5e+10").replace('mlx5_1",port="1"} 17', 'mlx5_1",port="1"} 0').replace("} 4411", "} 0")
)


@pytest.mark.parametrize(("check", "text"), [(NicPortSlow(), TEXT), (NicPortErrors(), TEXT)])
def test_the_checks_of_ports_judge_it(check: NicPortSlow | NicPortErrors, text: str) -> None:
    assert [finding.where.nics for finding in check.judge(node_of(text)).findings] == [("mlx5_1",)]
    assert check.judge(node_of(HEALTHY)).status is not Status.FINDING


def test_the_text_names_its_host() -> None:
    assert host_of_text(Blob("m", TEXT.encode())) == "gpu-7"


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
