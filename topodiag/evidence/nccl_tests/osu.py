"""Tables of the OSU micro-benchmarks: by size, the bandwidth or the time of what MPI (or NCCL below it) moves.

    # OSU MPI-CUDA Bandwidth Test v5.7
    # Size      Bandwidth (MB/s)
    262144                 9511.51

Of further columns (least and greatest time, overlap) nothing is read. MB are 1e6 bytes; times are microseconds.
SOURCE: OSU Micro-Benchmarks c/util/osu_util.c (print_header), c/mpi/pt2pt/osu_bw.c, v3.1 to v7.4.
"""

from __future__ import annotations

from dataclasses import replace

from topodiag.evidence.nccl_tests.words import labelled, physical
from topodiag.model.bench import OSU, BenchRow, BenchRun, Timing
from topodiag.model.provenance import MAX_QUOTE, Origin
from topodiag.words.own_data import patterns

MOST_TABLES = 1000
_LIKE = patterns("evidence/nccl_tests/lines", "osu")


def osu_runs(data: bytes, source: str) -> tuple[BenchRun, ...]:
    """The tables of a text, each a run without ranks; none of a head without rows. Never raises for content."""
    runs: list[BenchRun] = []
    unit = ""
    for number, text, _ in physical(data):
        line = labelled(number, text).text
        origin = Origin(source, number, line.strip()[:MAX_QUOTE])
        if (head := _LIKE["head"].search(line)) is not None and len(runs) < MOST_TABLES:
            runs.append(BenchRun(head["title"], (), program=OSU, source=source, origin=origin))
            unit = ""
        elif runs and (column := _LIKE["column"].search(line)) is not None:
            unit = column["unit"]
        elif unit and (row := _LIKE["row"].match(line)) is not None:
            value = float(row["value"])
            gbs = value / 1e3 if unit == "MB/s" else None
            timing = Timing(None if gbs else value, gbs, gbs)
            bench_row = BenchRow(int(row["size"]), out_of_place=timing, origin=origin)
            runs[-1] = replace(runs[-1], rows=(*runs[-1].rows, bench_row))
        elif line.strip() and not line.startswith("#"):
            unit = ""  # the text goes on below the table
    return tuple(run for run in runs if run.rows)
