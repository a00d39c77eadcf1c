"""Rings: hosts in their order, equal channels and equal hosts folded, the hop that differs marked."""

from dataclasses import replace

import numpy as np

from tests.draw.jobs import ringed
from tests.draw.shown import texts
from topodiag.draw.rings import draw_rings
from topodiag.model.job import Communicator, Job
from topodiag.model.job_rings import rings_of


def in_ring(
    hosts: int, gpus: int = 2, odd: str = "", *, turned: int = 0, closed: bool = True, twice: bool = False
) -> Job:
    job = ringed([f"n{number:02d}" for number in range(hosts)], gpus, odd=odd, odd_via="NET/Socket")
    order = np.roll(np.arange(job.world_size), -turned)
    ring = tuple(int(rank) for rank in order[: None if closed else -1])
    world = Communicator(0, job.world_size, np.arange(job.world_size), rings={0: ring} | ({1: ring} if twice else {}))
    return replace(job, communicators=(world,))


def test_each_host_is_a_box_with_its_ranks_and_each_hop_an_arrow_with_its_transport() -> None:
    svg = draw_rings(in_ring(3))
    shown = texts(svg)
    assert [text for text in shown if text in ("n00", "n01", "n02")] == ["n00", "n01", "n02"]
    assert "2-3" in shown
    assert shown.count("NET/IB/0") == 3
    assert shown.count("GDR") == 3
    assert shown.count("to the first") == 1


def test_rings_that_differ_are_lines_of_their_own() -> None:
    job = in_ring(2, twice=True)
    assert len(rings_of(job, job.communicators[0])) == 2, "the log shows channel 0 connected alone"
    assert {"channel 0", "channel 1"} <= set(texts(draw_rings(job)))


def test_channels_with_the_same_ring_are_one_line() -> None:
    job = in_ring(2, twice=True)
    job = replace(job, connections=replace(job.connections, channels=np.full(len(job.connections), 3, np.uint64)))
    assert "channels 0-1" in texts(draw_rings(job))


def test_the_hop_that_differs_from_most_is_marked() -> None:
    svg = draw_rings(in_ring(5, odd="n03"))
    assert svg.count('class="arrow oddhop"') == 1
    assert "NET/Socket/1" in texts(svg)


def test_two_hops_that_differ_accuse_nobody() -> None:
    assert 'oddhop"' not in draw_rings(in_ring(2, odd="n01"))


def test_many_hosts_fold_and_the_odd_one_stays() -> None:
    svg = draw_rings(in_ring(64, odd="n17"))
    shown = texts(svg)
    assert {"n00", "n17", "n63", "16 hosts", "45 hosts"} <= set(shown)
    assert svg.count('class="arrow oddhop"') == 1
    assert len(svg) < 12_000


def test_a_ring_begins_with_the_first_rank_of_a_host() -> None:
    shown = texts(draw_rings(in_ring(3, turned=1)))
    assert [text for text in shown if text in ("n00", "n01", "n02")] == ["n00", "n01", "n02"]


def test_an_open_ring_says_so() -> None:
    assert "not closed in the logs" in texts(draw_rings(in_ring(3, closed=False)))


def test_ranks_that_left_no_log_are_on_no_host_and_their_ring_is_not_drawn() -> None:
    job = in_ring(4)
    assert draw_rings(replace(job, ranks=tuple(rank for rank in job.ranks if rank.rank != 3))) == ""


def test_no_ring_no_picture() -> None:
    assert draw_rings(ringed(["n1"])) == ""
