"""What the rows of tables are read from: parts of results, and rows as tuples where a table is no list of parts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import starmap
from typing import Any

from topodiag.api.tables.interface import Part, Row
from topodiag.model.result import Result
from topodiag.nccl.prediction import Prediction
from topodiag.report.bench.json import benchmark_facts
from topodiag.report.documents.from_model import Document, from_model
from topodiag.report.job.registry import TABLES
from topodiag.report.node.json import node_facts
from topodiag.report.topo.predict import PATTERNS


def parts(shape: str, values: Iterable[object]) -> list[Document]:
    """Values of the model as the parts that a document has of them."""
    return [from_model(shape, value) for value in values]


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
    return lambda result: TABLES[name].rows(result) if result.jobs else ()


def benchmarks(result: Result) -> list[Part]:
    return list(starmap(Part, enumerate(map(benchmark_facts, result.benchmarks))))


def benchmark_sizes(result: Result) -> Iterator[Part]:
    return (Part(run.owner, row) for run in benchmarks(result) for row in run.rows)


def of_verdict(name: str, shape: str) -> Callable[[Result], list[Document]]:
    """These parts of the verdict; none where there is no verdict."""
    return lambda result: parts(shape, getattr(result.verdict, name, ()))


def causes(result: Result) -> Iterator[Part]:
    return starmap(Part, enumerate(of_verdict("causes", "diagnose.Cause")(result)))


def consequences(result: Result) -> Iterator[Part]:
    found = enumerate(getattr(result.verdict, "causes", ()))
    return (Part(number, consequence) for number, cause in found for consequence in cause.consequences)


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


def dimensions(made: Any) -> Iterator[Part]:
    return starmap(Part, made.document["cost"].items())
