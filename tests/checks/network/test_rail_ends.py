"""Both ends of a connection are brought together as if every sender was compared with every receiver."""

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.checks import jobs
from topodiag.checks.network import rails as job_rails
from topodiag.checks.network.rails import both_ends
from topodiag.checks.shared.job.evidence import hcas_by_host

HOSTS, GPUS = ("n0", "n1", "n2"), 2
RANKS = len(HOSTS) * GPUS
ROW = st.fixed_dictionaries({
    "comm": st.integers(-1, 2), "rank": st.integers(0, RANKS - 1), "peer": st.integers(0, RANKS - 1),
    "conn": st.integers(-1, 1), "direction": st.integers(0, 2), "channels": st.integers(0, 7),
    "net_dev": st.integers(-1, 2), "proxy": st.sampled_from([-1, -1, -1, 2]), "via": st.sampled_from(["NET/IB", "SHM"]),
})  # fmt: skip


def job(rows: list[dict[str, Any]]) -> Any:
    """Three hosts, of which the last lists other devices than the first two."""
    document = jobs.job(len(HOSTS), GPUS, rows=[])
    processes = tuple(
        replace(process, hcas=(jobs.hca(0), jobs.hca(1), *((jobs.hca(2),) if process.host == "n2" else ())))
        for process in document.processes
    )
    return replace(document, processes=processes, connections=jobs.connections(rows, HOSTS, GPUS))


def compared(rows: list[dict[str, Any]]) -> tuple[int, int, list[tuple[int, int]], set[int]]:
    """Channels, crossed ones, the pairs that cross in the order of their connection, and their ranks."""

    def lists(rank: int) -> int:
        return 3 if HOSTS[rank // GPUS] == "n2" else 2

    def judged(row: dict[str, Any]) -> bool:
        across = row["rank"] // GPUS != row["peer"] // GPUS and row["via"] == "NET/IB"
        return across and row["comm"] >= 0 and row["net_dev"] >= 0 and row["proxy"] < 0 and row["conn"] != 1

    def key(row: dict[str, Any]) -> tuple[int, ...]:
        return row["comm"], row["rank"], row["peer"], row["conn"]

    total, crossed, pairs = 0, 0, []
    some = [at for at, row in enumerate(rows) if judged(row)]
    for a, b in product(some, some):
        one, other = rows[a], rows[b]
        alike = key(one) == key(other) and lists(one["rank"]) == lists(one["peer"])
        if not alike or (one["direction"], other["direction"]) != (1, 2):
            continue
        channels = (one["channels"] & other["channels"]).bit_count()
        total += channels
        if channels and one["net_dev"] != other["net_dev"]:
            crossed += channels
            pairs.append((key(one), a, b))
    ranks = {rank for (_, rank, peer, _), _, _ in pairs for rank in (rank, peer)}
    return total, crossed, [(a, b) for _, a, b in sorted(pairs)], ranks


@given(st.lists(ROW, max_size=60), st.sampled_from([1, 5, 1 << 20]))
def test_every_sender_meets_every_receiver_of_its_connection(rows: list[dict[str, Any]], together: int) -> None:
    # Few ranks, so that ends meet.
    rows = [row | {"rank": row["rank"] % 4, "peer": row["peer"] % 5} for row in rows]
    document = job(rows)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(job_rails, "JOIN_ROWS", together)
        found = both_ends(document, hcas_by_host(document))
    total, crossed, pairs, ranks = compared(rows)
    assert (found.channels, found.crossed, found.ranks) == (total, crossed, ranks)
    assert [(each.sender, each.receiver) for each in found.first] == pairs[: job_rails.EXAMPLES]
    assert {document.connections.hosts[host] for host in found.hosts} == {HOSTS[rank // GPUS] for rank in ranks}


def test_hosts_that_list_one_device_or_none_have_no_rails_to_cross() -> None:
    document = job([{"rank": 0, "peer": 2, "via": "NET/IB", "direction": d, "net_dev": d} for d in (1, 2)])
    bare = replace(document, processes=tuple(replace(process, hcas=(jobs.hca(0),)) for process in document.processes))
    assert both_ends(document, hcas_by_host(document)).crossed > 0
    assert both_ends(bare, hcas_by_host(bare)).channels == 0


def test_bits_are_counted_in_all_eight_bytes() -> None:
    masks = np.array([0, 1, (1 << 64) - 1, 1 << 63 | 1 << 40], np.uint64)
    assert job_rails._bits(masks).tolist() == [0, 1, 64, 2]
