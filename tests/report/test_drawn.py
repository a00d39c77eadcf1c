"""What pages say, by rows of a table: each names its page, the style it is drawn in, and what it must and must not
have."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from random import Random
from subprocess import CompletedProcess
from typing import Any

import jsonschema
import pytest
from rich.cells import cell_len

from benchmarks.sweep_fabric import Noise, fabric_of, measure, sweep
from tests.checks import jobs
from tests.cli.test_sessions import answered
from tests.printed import drawn, written
from tests.report import machines
from tests.report.bench import test_table as bench
from tests.report.formats import test_formats as json_report
from tests.report.job import excerpts
from tests.report.job import test_views as job
from tests.report.place import test_look as place
from tests.report.sweep import test_page as swept
from tests.report.test_table import table
from tests.report.verdict import test_page as verdict
from tests.scanned import scanned
from tests.tables import examples
from tests.valid import assert_valid
from topodiag.evidence.intake.collected import fixtures
from topodiag.model.bench import Benchmark
from topodiag.model.node import Sight, gpu_sight
from topodiag.model.result import Result
from topodiag.report.registry import names, report
from topodiag.report.table import draw_result
from topodiag.sweep.further import next_round
from topodiag.sweep.judge import judge
from topodiag.sweep.plan import first_round
from topodiag.sweep.values import Part


def of_node(make: Callable[[], Result]) -> Callable[..., str]:
    return lambda **style: table(make(), **style)


def of_sweep(*faults: Part, share: float = 0.6, **style: Any) -> str:
    measurement = sweep(swept.FABRIC, dict.fromkeys(faults, share), 1, Noise(0.01, 0))
    return "\n".join(swept.page_of(measurement.judgement, measurement.plans, **style))


def of_first_round(**style: Any) -> str:
    plan = first_round(fabric_of(16, 4))
    judged = judge([plan], measure(plan, swept.FAULTS, Random(1), Noise(0.01, 0)))
    return "\n".join(swept.page_of(judged, [plan], further=next_round([plan], judged), **style))


def of_four_runs() -> str:
    normal = replace(bench.low(), verdict="normal", hypotheses=())
    return bench.drawn(normal, normal, normal, bench.low())


def of_failed_run() -> str:
    return bench.drawn(Benchmark(replace(bench.run(), errors=("gpu-a01: Test NCCL failure common.cu:1",), rows=())))


def of_answer(make: Callable[[], Result]) -> Callable[..., str]:
    return lambda **style: "\n".join(verdict.page(make(), **style)) + "\n"


def of_json(result: Result) -> Callable[..., str]:
    def text() -> str:
        document = json_report.as_json(result)
        assert_valid(json.loads(document), json_report.SCHEMA)
        return document

    return text


PAGES: dict[str, Callable[..., str]] = {
    **{name: of_answer(make) for name, make in verdict.ANSWERS.items()},
    "JSON of a healthy node": of_json(machines.healthy()),
    "JSON of a sick node": of_json(machines.sick()),
    "JSON of a matrix alone": of_json(machines.only_matrix()),
    "JSON of a job": of_json(Result(jobs=(job.broken(),))),
    "JSON of a job of unknown numbers": of_json(Result(jobs=(job.with_unknown_numbers(),))),
    "JSON of a low run": of_json(Result(benchmarks=(bench.low(),))),
    "JSON of a flat run": of_json(Result(benchmarks=(bench.flat(),))),
    "healthy": of_node(machines.healthy),
    "sick": of_node(machines.sick),
    "without_gpus": of_node(machines.without_gpus),
    "without_gpus_that_answer": of_node(lambda: machines.without_gpus(hung=True)),
    "only_matrix": of_node(machines.only_matrix),
    "nothing": of_node(Result),
    "low run": lambda **style: bench.drawn(bench.low(), **style),
    "four runs": of_four_runs,
    "failed run": of_failed_run,
    "job": lambda **style: job.drawn(jobs.job(2, 8), **style),
    "no job": lambda **style: job.drawn(None, **style),
    "job of one rank a node": lambda **style: job.drawn(jobs.job(2, 1), **style),
    "rings": lambda **style: job.drawn(job.broken(), ("rings",), **style),
    "open ring": lambda **style: job.drawn(job.with_open_ring(), ("rings",), **style),
    "errors": lambda **style: job.drawn(job.broken(), ("errors",), **style),
    "errors of the application alone": lambda **style: job.drawn(
        job.with_errors_of_the_application(), ("errors",), **style
    ),
    "ranks of which four are missing": lambda **style: job.drawn(job.without_last_ranks(), ("ranks",), **style),
    "rings that receivers print": lambda **style: job.drawn(job.printed_by_receivers(), ("rings",), **style),
    "printed by one rank": lambda: excerpts.drawn("printed"),
    "printed without a head": lambda: excerpts.drawn("printed", "NCCL INFO "),
    "printed with a head that was masked": lambda: excerpts.drawn("printed", "[Node-A]:[PID]:[TID] [0] NCCL INFO "),
    "trees of one rank": lambda: excerpts.drawn("trees"),
    "rings of one rank": lambda: excerpts.drawn("rings"),
    "communicators of one rank": lambda: excerpts.drawn("communicators", width=160),
    "printed of a bare log": lambda: excerpts.drawn("printed", lines=["Using network IB"]),
    "trees of a bare log": lambda: excerpts.drawn("trees", lines=["Using network IB"]),
    "transports of 40 nodes": lambda **style: job.drawn(jobs.job(40, 8), ("transports",), **style),
    "split layout": lambda **style: "\n".join(place.drawn(place.SPLIT, **style)),
    "two layouts": lambda **style: "\n".join(place.drawn(place.SPLIT, place.PACKED, **style)),
    "three layouts": lambda **style: "\n".join(place.drawn(place.SPLIT, place.PACKED, place.SPLIT, **style)),
    "layout of an odd name": lambda: "\n".join(place.drawn(place.PACKED, names=("\x1b[31mred", "n1", "n2", "n3"))),
    "layout of 12000 nodes": lambda: "\n".join(place.page_of(place.large(12_000))),
    "sweep": lambda **style: "\n".join(swept.page_of(swept.SWEEP.judgement, swept.SWEEP.plans, **style)),
    "sweep of two racks": lambda **style: of_sweep(Part("between", "rack1 and rack2", 5), **style),
    "healthy sweep": of_sweep,
    "first round": of_first_round,
}


def said(text: str, column: str, wanted: Any) -> Any:
    """What a page has where a row says what it should (see the table for the columns)."""
    lines = text.splitlines()
    match column:
        case "lines":
            return [line for line in wanted if line in lines]
        case "line":
            shown = next(f"{line}\n" for line in lines if wanted[0] in line)
            return [words for words in wanted if words in shown]
        case "line_lacks":
            return [
                wanted[0],
                *(words for words in wanted[1:] if not any(wanted[0] in x and words in x for x in lines)),
            ]
        case "matches":
            return [pattern for pattern in wanted if re.search(pattern, text, re.MULTILINE)]
        case "order":
            return sorted(wanted, key=text.index)
    return answered(CompletedProcess([], 0, text, ""), column, wanted, Path(), [])


@examples("page", "style", "has")
def test_a_page_says_what_its_row_says(page: str, style: dict[str, Any] | None, has: dict[str, Any]) -> None:
    text = PAGES[page](**(style or {}))
    assert {column: said(text, column, wanted) for column, wanted in has.items()} == has, text


# --- Every shipped machine gives a valid JSON, and a table that fits the page and names what was found


SCHEMA = json.loads((files("topodiag.report") / "schema" / "result-1.0.schema.json").read_text())
jsonschema.Draft202012Validator.check_schema(SCHEMA)
VALID = jsonschema.Draft202012Validator(SCHEMA)


@pytest.fixture(params=fixtures())
def result(request):
    return scanned(f"fixture:{request.param}")


def rendered(result, name, **style):
    return drawn(draw_result, result, **style) if name == "table" else written(report(name), result, **style)


def test_the_json_is_valid(result):
    VALID.validate(json.loads(rendered(result, "json")))


@pytest.mark.parametrize("width", [80, 160])
def test_the_table_fits_and_names_every_finding(result, width):
    text = rendered(result, "table", width=width, verbose=1)
    assert max(map(cell_len, text.splitlines())) <= width
    for finding in result.findings:
        assert finding.id in text
    assert rendered(result, "table", width=width, ascii=True).isascii()


def test_a_tick_is_given_only_to_gpus_that_were_seen(result):
    ticked = rendered(result, "table").startswith("✔")
    assert not ticked or (gpu_sight(result.nodes[0]).sight is Sight.SEEN and not result.findings)


def test_every_format_renders(result):
    for name in names():
        assert rendered(result, name)
