"""Holes of zeros, which rotation with copytruncate leaves in a log, cost no more than other bytes."""

import time
from pathlib import Path

from tests.evidence.nccl_log.line_by_line import extract_plain
from tests.evidence.nccl_log.scan_compare import plain_rows
from topodiag.evidence.nccl_log.fast.scan import extract

LOG = (Path(__file__).parents[4] / "fixtures/jobs/init-hang/logs/nccl.gpu-a01.41000.log").read_bytes()
HOLE = b"\0" * (4 << 20)


def seconds(data: bytes) -> float:
    """CPU seconds, the least of three readings: what the machine adds to one of them is no cost of a byte."""
    readings = []
    for _ in range(3):
        began = time.process_time()
        extract(data, 0, 0)
        readings.append(time.process_time() - began)
    return min(readings)


def test_a_byte_of_a_hole_costs_no_more_than_one_of_a_record() -> None:
    plain = LOG * 400
    extract(plain, 0, 0)
    assert seconds(HOLE + LOG) / len(HOLE) < max(2 * seconds(plain) / len(plain), 1e-7)


def test_records_around_a_hole_are_read_by_both_extractors() -> None:
    first, last = LOG[:1000].rpartition(b"\n")[0] + b"\n", LOG[1000:]
    torn = first + b"\0" * 5000 + last
    assert plain_rows(extract(torn, 0, 0)) == plain_rows(extract_plain(torn, 0, 0))
    assert len(extract(torn, 0, 0)["threads"]) == 1
