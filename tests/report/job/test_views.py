"""The views of a job fit the page, escape what is foreign, fold what is alike, and say what is not known."""

import io
import json
from dataclasses import replace
from functools import partial
from importlib.resources import files

import numpy as np
import pyarrow.parquet as pq
import pytest

from tests import printed
from tests.checks import jobs
from tests.tables import examples
from topodiag.cli.logs import logs
from topodiag.model.finding import Finding, Severity, Where
from topodiag.model.job import Event
from topodiag.model.job_rings import bare_transport, short_transport
from topodiag.model.provenance import Origin
from topodiag.model.result import Result
from topodiag.report import table_files
from topodiag.report.interface import Style
from topodiag.report.job.comms import mixes
from topodiag.report.job.registry import TABLES, VIEWS, table
from topodiag.report.job.table import draw_logs, spell_driver
from topodiag.report.job.words import clock, spell_ranks
from topodiag.report.page import print_drawn
from topodiag.report.registry import report

SCHEMA = json.loads((files("topodiag.report") / "schema" / "result-1.0.schema.json").read_text())
EVIL = "\x1b[31mevil\x07" + "wide" * 60


def with_rings(job):
    world = job.communicators[0]
    ring = tuple(range(world.nranks))
    return replace(job, communicators=(replace(world, rings={0: ring, 1: ring}), *job.communicators[1:]))


def broken(host="n0"):
    when = 1_700_000_000.25
    events = (
        Event("peer closed", "connection closed", "n1", rank=9, ts=when + 5, secondary=True, count=511),
        Event("port", "mlx5_3: port error", host, rank=3, ts=when, origin=Origin("rank3.log", 7, "port error")),
        Event("other", "without a time", host),
    )
    return with_rings(jobs.job(2, 8, events=events))


def drawn(job, views=(), **style):
    return printed.drawn(partial(draw_logs, views=views), Result(jobs=(job,) if job else ()), **style)


def with_unknown_numbers():
    job = jobs.job(1, 2)
    world = replace(job.communicators[0], init_s=np.full(2, np.nan), ranks=np.array([0, -1]), nodes=-1)
    return replace(job, communicators=(world,))


def with_open_ring():
    job = broken()
    return replace(job, communicators=(replace(job.communicators[0], rings={0: (0, 1, 2)}),))


def without_last_ranks():
    job = jobs.job(2, 8)
    return replace(job, ranks=job.ranks[:12])


def with_errors_of_the_application():
    events = [jobs.event("other", "ncclInvalidUsage", "", level="APP", secondary=True),
              jobs.event("duplicate gpu", "Duplicate GPU detected", "", level="APP", secondary=True)]  # fmt: skip
    return jobs.job(events=events)


def printed_by_receivers():
    job = jobs.job(2, 2, rows=[row for row in jobs.healthy_rows(2, 2, 2) if row.get("direction") != 1])
    return replace(job, communicators=(replace(job.communicators[0], rings={0: (0, 2, 3, 1)}),))


@pytest.mark.parametrize("width", [40, 80, 160])
@pytest.mark.parametrize("hosts", [1, 2, 40])
@pytest.mark.parametrize("views", [(), *((view,) for view in VIEWS)])
def test_every_view_fits_the_page(views, hosts, width):
    out = drawn(with_rings(jobs.job(hosts, 8)), views, width=width)
    assert max(map(len, out.splitlines())) <= width
    assert "Traceback" not in out


@pytest.mark.parametrize("views", [(), *((view,) for view in VIEWS)])
def test_foreign_text_never_reaches_the_terminal(views):
    job = broken(EVIL)
    ranks = tuple(replace(rank, host=EVIL, bus_id=EVIL) for rank in job.ranks)
    made = replace(job, name=EVIL, ranks=ranks, hosts=(EVIL, "n1"), nccl_versions=(EVIL,), notes=(EVIL,))
    out = drawn(made, views, ascii=True)
    assert "\x1b" not in out
    assert "\x07" not in out
    assert out.isascii()
    assert max(map(len, out.splitlines())) <= 80


@pytest.mark.parametrize("views", [(), *((view,) for view in VIEWS)])
def test_a_job_of_which_nothing_is_known_is_drawn(views):
    whole = jobs.job(1, 2, rows=())
    bare = replace(whole, world_size=-1, ranks=(), processes=(), communicators=(), hosts=(), nccl_versions=())
    assert drawn(bare, views)


def test_the_error_that_is_marked_is_the_one_that_the_findings_name():
    warned = jobs.event("other", "Failed to open libibverbs.so[.1]", pid=4)
    refused = [jobs.event("connect", f"Connect to 10.0.0.{at}<1> failed : refused", pid=5 + at) for at in range(30)]
    out = drawn(replace(jobs.job(), events=(warned, *refused)), ("errors",), width=160)
    assert [line for line in out.splitlines() if "first error" in line] == [
        line for line in out.splitlines() if "Connect to 10.0.0.0<1> failed" in line
    ]
    late = jobs.event("cuda", "Cuda failure 'x'", pid=99)
    out = drawn(replace(jobs.job(), events=(*refused, late)), ("errors",), width=160)
    assert "Cuda failure 'x'  first error" in out
    assert "11 more errors" in out
    assert "first error" not in drawn(replace(jobs.job(), events=(warned,)), ("errors",), width=160)


def test_transports_count_what_senders_print_once():
    assert mixes(jobs.job(2, 8)) == {
        ("n0", "n0"): {"P2P": 8},
        ("n0", "n1"): {"IB+GDR": 8},
        ("n1", "n0"): {"IB+GDR": 8},
        ("n1", "n1"): {"P2P": 8},
    }


@pytest.mark.parametrize("name", TABLES)
def test_every_table_is_written_as_csv_and_as_parquet(name):
    result = Result(jobs=(broken(),))
    text, raw = io.StringIO(), io.BytesIO()
    table_files.write_csv(table(name).types, table(name).rows(result), text)
    table_files.write_parquet(table(name).types, table(name).rows(result), raw)
    rows = pq.read_table(raw)
    assert rows.column_names == text.getvalue().splitlines()[0].split(",")
    assert rows.num_rows == len(text.getvalue().splitlines()) - 1


def test_parquet_that_is_written_in_pieces_is_the_same_table(monkeypatch):
    result = Result(jobs=(broken(),))
    whole, pieces = io.BytesIO(), io.BytesIO()
    table_files.write_parquet(table("connections").types, table("connections").rows(result), whole)
    monkeypatch.setattr(table_files, "ROWS_AT_ONCE", 5)
    table_files.write_parquet(table("connections").types, table("connections").rows(result), pieces)
    assert pq.ParquetFile(pieces).num_row_groups > 1
    assert pq.read_table(pieces).to_pylist() == pq.read_table(whole).to_pylist()


def test_the_options_name_every_view_and_table():
    options = {param.name: param for param in logs.params}
    assert set(VIEWS) <= set(options)
    assert options["csv_"].type.choices == options["parquet"].type.choices == tuple(TABLES)


def test_csv_cells_are_neither_escapes_nor_formulas():
    job = replace(broken(), name="=cmd()\x1b[0m")
    stream = io.StringIO()
    table_files.write_csv(table("events").types, table("events").rows(Result(jobs=(job,))), stream)
    assert "\x1b" not in stream.getvalue()
    assert stream.getvalue().splitlines()[1].startswith("'=cmd()")


@examples("label", "bare", "short")
def test_transports_are_named_without_device(label, bare, short):
    assert (bare_transport(label), short_transport(label)) == (bare, short)


def test_words_for_ranks_times_and_drivers():
    assert spell_ranks([0, 1, 2, 5]) == "0-2,5"
    assert spell_ranks([0, 8, 16]) == "0-16:8"
    assert clock(None) == clock(1e300) == clock(float("nan")) == ""
    assert (spell_driver("12040"), spell_driver("x")) == ("12.4", "x")


def test_findings_of_several_jobs_name_theirs_in_every_format():
    where = Where(nodes=("n0",), ranks=(3,), jobs=("job 0", "job 1", "job 4"))
    finding = Finding("JOB003", Severity.WARNING, "differs", "seen", "wanted", ("mend it",), where)
    several = tuple(replace(jobs.job(1, 8), name=f"job {number}") for number in (0, 1, 4))
    result = Result(jobs=several, findings=(finding,))
    string_ios = {}
    of_findings = table("findings")
    for name, render in (
        ("table", lambda stream: print_drawn(draw_logs, result, stream, Style())),
        ("json", lambda stream: report("json")(result, stream, Style())),
        (
            "csv",
            lambda stream: table_files.write_csv(of_findings.types, of_findings.rows(result), stream),
        ),
    ):
        string_ios[name] = io.StringIO()
        render(string_ios[name])
    assert "job 0-1,4 · n0 · rank 3" in string_ios["table"].getvalue()
    assert json.loads(string_ios["json"].getvalue())["findings"][0]["where"]["jobs"] == ["job 0", "job 1", "job 4"]
    assert string_ios["csv"].getvalue().splitlines()[1].endswith('"job 0, job 1, job 4"')
