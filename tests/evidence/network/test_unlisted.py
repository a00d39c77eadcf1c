"""NET002 by requests for a node's address that no node of the cluster has."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pasted import chain, loud, said

REQUEST = (
    "(autoscaler +13s) Error: No available node types can fulfill resource request"
    " {'node:203.0.113.7': 0.001, 'GPU': 1.0}. Add suitable node types to this cluster to resolve this issue.\n"
)
AT = "2025-03-03 22:56:06,173 INFO worker.py:1636 -- Connecting to existing Ray cluster at address: {}:6379...\n"


@pytest.mark.parametrize(
    "before",
    [
        AT.format("10.16.1.2"),
        "Local node IP: 10.16.1.2\n",
        "Head Node: 10.16.1.2\nWorker Nodes: 10.16.1.3, 10.16.1.4\n",
        "{'CPU': 64.0, 'node:10.16.1.2': 1.0, 'node:__internal_head__': 1.0, 'GPU': 8.0}\n",
        "(RayWorkerWrapper pid=411, ip=10.16.1.3) INFO 03-03 22:56:07 selector.py:261] Using Flash Attention.\n",
    ],
)
def test_an_address_that_no_node_offers_is_why_there_is_no_place(before: str, tmp_path: Path) -> None:
    made = said(tmp_path, before + REQUEST)
    assert chain(made)[:2] == [("NET002", ""), ("JOB009", "NET002")]
    assert "203.0.113.7" in made["findings"][0]["message"]
    assert made["verdict"]["state"] == "failed"


def test_rays_own_word_on_the_address_of_a_node_suffices(tmp_path: Path) -> None:
    line = (
        "WARNING services.py:401 -- This node has an IP address of 10.8.0.4, while we can not find the matched Raylet"
        " address. This maybe come from when you connect the Ray cluster with a different IP address.\n"
    )
    assert "NET002" in loud(tmp_path, line)


@pytest.mark.parametrize(
    "text",
    [
        REQUEST,  # nothing says which addresses there are
        AT.format("203.0.113.7") + REQUEST,  # the node is there, and has too few GPUs
        AT.format("10.16.1.2") + REQUEST.replace("'node:203.0.113.7': 0.001, ", ""),  # any node would do
        AT.format("10.16.1.2") + "Head Node: 203.0.113.7\n" + REQUEST,
        AT.format("10.16.1.2") + "placement group of {'node:203.0.113.7': 0.001} is ready\n",
    ],
)
def test_a_request_that_a_node_of_the_cluster_could_meet_is_no_wrong_address(text: str, tmp_path: Path) -> None:
    assert "NET002" not in loud(tmp_path, text)
