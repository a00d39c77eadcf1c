"""The tables of results: report/tables.toml says what each holds, and here is what its rows are read from. docs/api.md
and the DataFrames follow from both. Judges nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import starmap
from typing import TYPE_CHECKING, Any

from topodiag.model.result import Result
from topodiag.nccl.prediction import Prediction
from topodiag.report.bench.json import benchmark_facts
from topodiag.report.documents.from_model import Document, from_model, reading
from topodiag.report.gaps import gaps_of
from topodiag.report.job import registry
from topodiag.report.node.json import node_facts
from topodiag.report.table_files import Row, Table, table_of
from topodiag.report.topo.predict import PATTERNS
from topodiag.words.own_data import own_data

if TYPE_CHECKING:
    import pandas as pd

DTYPES = {
    "text": "string", "names": "string", "whole": "Int64", "number": "float64", "truth": "boolean", "list": "object",
}  # fmt: skip
"""Kind of a column and its dtype in pandas. What is not known is missing: <NA>, or NaN in a column of numbers."""


def frame(table: Table, held: Any) -> pd.DataFrame:
    """The rows of a table as a DataFrame with the documented columns and dtypes, also where there are none."""
    import pandas as pd  # noqa: PLC0415 - 0.5 s, and only tables need it

    rows = list(table.rows(held))
    by_column = list(zip(*rows, strict=True)) if rows else [()] * len(table.columns)
    pairs = zip(table.columns, by_column, strict=True)
    return pd.DataFrame({column.name: pd.Series(list(values), dtype=DTYPES[column.kind]) for column, values in pairs})


class Part:
    """A part of something: its attributes, and the node, the number or the name that it is of as `owner`."""

    def __init__(self, owner: Any, part: Any) -> None:
        self.owner = owner
        self._read = part

    def __getattr__(self, name: str) -> Any:
        try:
            return reading(name)(self._read)
        except KeyError:
            raise AttributeError(f"no value {name!r}: there are {', '.join(self._read)}") from None


def parts(shape: str, path: str) -> Callable[[Result], list[Document]]:
    """The values at a path of the result as the parts that a document has of them; none where there is no verdict."""
    return lambda result: [from_model(shape, value) for value in reading(path)(result) or ()]


# --- of a diagnosis -------------------------------------------------------------------------------------------------


def nodes(result: Result) -> Iterator[Document]:
    return (node_facts(node) for node in result.nodes)


def of_nodes(name: str) -> Callable[[Result], Iterator[Part]]:
    """These parts of all nodes."""
    return lambda result: (Part(node, part) for node in nodes(result) for part in node[name])


def matrix(result: Result) -> Iterator[Row]:
    for node in nodes(result):
        gpus = {f"GPU{gpu['index']}" for gpu in node["gpus"]}
        names = gpus | {nic["name"] for nic in node["nics"]}  # and no NIC by two names
        for a, row in node["matrix"].items():
            for b, word in row.items():
                if {a, b} <= names:
                    yield node["host"], a, b, word


def of_jobs(name: str) -> Callable[[Result], Iterable[Row]]:
    """The rows of the table that `topodiag logs --csv` has by this name."""
    return lambda result: registry.table(name).rows(result) if result.jobs else ()


def benchmarks(result: Result) -> list[Part]:
    return list(starmap(Part, enumerate(map(benchmark_facts, result.benchmarks))))


def benchmark_sizes(result: Result) -> Iterator[Part]:
    return (Part(run.owner, row) for run in benchmarks(result) for row in run.rows)


def causes(result: Result) -> Iterator[Part]:
    return starmap(Part, enumerate(parts("diagnose.Cause", "verdict.causes")(result)))


def consequences(result: Result) -> Iterator[Part]:
    numbered = enumerate(getattr(result.verdict, "causes", ()))
    return (Part(number, consequence) for number, cause in numbered for consequence in cause.consequences)


def not_observed(result: Result) -> Iterable[object]:
    return gaps_of(result)


# --- of a prediction and of layouts ---------------------------------------------------------------------------------


def predicted_paths(prediction: Prediction) -> Iterator[Row]:
    for a, row in prediction.paths.items():
        for b, (hops, gbs, type_) in row.items():
            yield a, b, hops, gbs, type_


def channels(prediction: Prediction) -> Iterator[Row]:
    for graph in prediction.graphs:
        for channel, order in enumerate(graph.orders):
            yield graph.id, PATTERNS.get(graph.pattern), channel, graph.bw_intra, graph.bw_inter, " ".join(order)


def graphs(prediction: Prediction) -> Iterator[Row]:
    for g in prediction.graphs:
        yield (
            g.id, PATTERNS.get(g.pattern), g.channels, g.bw_intra, g.bw_inter, g.type_intra, g.type_inter,
            g.cross_nic, g.same_channels != 0,
        )  # fmt: skip


def tuning(prediction: Prediction) -> Iterator[Row]:
    for collective, algorithms in prediction.tuning.items():
        for algorithm, protocols in algorithms.items():
            for protocol, (latency_us, gbs) in protocols.items():
                yield collective, algorithm, protocol, latency_us, gbs


def dimensions(layout: Any) -> Iterator[Part]:
    return starmap(Part, layout.document["cost"].items())


# --- the tables -----------------------------------------------------------------------------------------------------


def _items(words: str) -> Callable[[Any], Iterable[Any]]:
    """What the rows of a table are read from, by its words in tables.toml."""
    name, *arguments = words.split()
    function: Any = globals().get(name)
    if function is None:
        return reading(name)
    items: Callable[[Any], Iterable[Any]] = function(*arguments) if arguments else function
    return items


def _tables(kind: str) -> dict[str, Table]:
    """The tables of a kind of results, by name."""
    held = own_data("report/tables")[kind]
    return {name: table_of(kind, name, _items(table["rows"])) for name, table in held.items()}


DIAGNOSIS: Mapping[str, Table] = _tables("diagnosis")
PREDICTION: Mapping[str, Table] = _tables("prediction")
_FINDINGS = {"findings": replace(DIAGNOSIS["findings"], about="Faults of the layout, worst first.")}
AUDIT: Mapping[str, Table] = _FINDINGS | _tables("audit")
SOLUTION: Mapping[str, Table] = _FINDINGS | _tables("solution") | {"map": AUDIT["map"]}
TABLES: Mapping[str, Mapping[str, Table]] = {
    "diagnose, scan, logs, bench": DIAGNOSIS,
    "predict": PREDICTION,
    "audit": AUDIT,
    "solve": SOLUTION,
}
"""By the functions whose results have these tables."""
