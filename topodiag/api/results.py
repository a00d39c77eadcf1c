"""What the functions of the API return: findings, tables, the document as JSON, and a page for notebooks."""

from __future__ import annotations

import io
from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

from topodiag.api import tables
from topodiag.model.bench import Benchmark
from topodiag.model.errors import TopodiagError
from topodiag.model.finding import Finding, Input, Outcome
from topodiag.model.node import Node
from topodiag.model.provenance import NotObserved
from topodiag.model.result import Identity, Result, Timeline
from topodiag.model.verdict import Verdict
from topodiag.report.documents.from_model import PAGE_INDENT, RESULT_INDENT, Document, write_json
from topodiag.report.table_files import Table
from topodiag.report.words import counted, unexplained_words
from topodiag.words.text import clean
from topodiag.words.units import fold_hosts, percent

if TYPE_CHECKING:
    import pandas as pd

    from topodiag.app.case.topology import Topology
    from topodiag.model.job import Job
    from topodiag.nccl.prediction import Prediction
    from topodiag.placement.audit import Audit
    from topodiag.placement.solve import Solved

REPR_WIDE = 120
"""Characters of a repr."""


class UnknownTableError(TopodiagError, KeyError):
    """A table that this kind of result has not."""

    __str__ = TopodiagError.__str__


class Answer(ABC):
    """What every result offers. Results are values: they do not change, and asking twice gives the same."""

    known: ClassVar[Mapping[str, Table]]
    """Tables of this kind of result, by name."""

    @property
    @abstractmethod
    def findings(self) -> tuple[Finding, ...]:
        """Faults, worst first."""

    @property
    @abstractmethod
    def headline(self) -> str:
        """The answer in one line, without the findings."""

    @abstractmethod
    def to_json(self) -> str:
        """The document that the command prints with `--format json`, to the byte."""

    def tables(self) -> tuple[str, ...]:
        """Names for `table`."""
        return tuple(self.known)

    def table(self, name: str) -> pd.DataFrame:
        """A table with its documented columns, also where it has no rows. Raises UnknownTableError (a KeyError)."""
        table = self.known.get(name)
        if table is None:
            raise UnknownTableError(f"no table {name!r:.40}: the tables are {', '.join(self.known)}")
        return tables.frame(table, self._held())

    def _held(self) -> object:
        """What the rows are made from."""
        return self

    def __repr__(self) -> str:
        words = [clean(self.headline)]
        if "findings" in self.known:
            words.append(", ".join(words for _, words in counted(self.findings)) or "no findings")
        if self.findings:
            words.append(f"{self.findings[0].id} {clean(self.findings[0].message)}")
        text = f"<topodiag: {': '.join(words)}>"
        return text if len(text) <= REPR_WIDE else text[: REPR_WIDE - 2] + "…>"

    def _repr_html_(self) -> str:
        from topodiag.api.html import page_of  # noqa: PLC0415 - jinja2, which only notebooks need

        return page_of(self)


class Diagnosis(Answer):
    """The result of `diagnose`, `scan`, `logs` and `bench`. `result` is the model's value of it."""

    known = tables.DIAGNOSIS

    def __init__(self, result: Result) -> None:
        self.result = result

    @property
    def findings(self) -> tuple[Finding, ...]:
        return self.result.findings

    @property
    def verdict(self) -> Verdict | None:
        """What `diagnose` and `bench` make of it; None of `scan` and `logs`."""
        return self.result.verdict

    @property
    def identity(self) -> Identity:
        """Hosts by every name."""
        return self.result.identity

    @property
    def timeline(self) -> Timeline:
        """What happened, in order."""
        return self.result.timeline

    @property
    def nodes(self) -> tuple[Node, ...]:
        return self.result.nodes

    @property
    def jobs(self) -> tuple[Job, ...]:
        return self.result.jobs

    @property
    def benchmarks(self) -> tuple[Benchmark, ...]:
        return self.result.benchmarks

    @property
    def outcomes(self) -> tuple[Outcome, ...]:
        return self.result.outcomes

    @property
    def inputs(self) -> tuple[Input, ...]:
        return self.result.inputs

    @property
    def not_observed(self) -> tuple[NotObserved, ...]:
        return self.result.not_observed

    @property
    def headline(self) -> str:
        if self.verdict is not None:
            return f"{self.verdict.state.value.replace('_', ' ')}: {self.verdict.headline}"
        texts = []
        if self.nodes:
            texts.append(fold_hosts([node.host for node in self.nodes]))
        texts += [f"job {job.name}" for job in self.jobs]
        texts += [f"{run.run.collective or 'run'} {run.verdict}" for run in self.benchmarks]
        if open_ := self.result.troubles():
            texts.append(unexplained_words(open_))
        return ", ".join(texts) or "no node, job or run in the evidence"

    def to_json(self) -> str:
        from topodiag.report.formats.json import document  # noqa: PLC0415 - only where it is asked for

        return _text(document(self.result), RESULT_INDENT)

    def _held(self) -> object:
        return self.result


class PredictedTopology(Answer):
    """The result of `predict`: NCCL's decisions on a topology."""

    known = tables.PREDICTION

    def __init__(self, topology: Topology, prediction: Prediction) -> None:
        self.topology = topology
        self.prediction = prediction

    @property
    def findings(self) -> tuple[Finding, ...]:
        """None: a topology that NCCL refuses is `accepted` False; `topodiag topo check` has findings."""
        return ()

    @property
    def accepted(self) -> bool:
        """Whether NCCL takes the topology; `prediction.why` has its words where it does not."""
        return self.prediction.accepted

    @property
    def headline(self) -> str:
        prediction = self.prediction
        where = f"NCCL {prediction.version} on {self.topology.name}"
        if not prediction.accepted:
            return f"{where}: refused: {prediction.why}"
        choice = prediction.all_reduce
        by = f", all_reduce by {choice.algorithm} {choice.protocol}" if choice is not None else ""
        return f"{where}: {prediction.ranks} ranks{by}"

    def to_json(self) -> str:
        from topodiag.report.topo.predict import predict_json  # noqa: PLC0415 - only where it is asked for

        return _text(predict_json(self.prediction, self.topology.inputs, self.topology.not_observed))

    def _held(self) -> object:
        return self.prediction


class AuditedLayout(Answer):
    """The result of `audit`: what a layout costs."""

    known = tables.AUDIT

    def __init__(self, audit: Audit, result: Result) -> None:
        self.audit, self.result, self.inputs = audit, result, result.inputs

    @property
    def findings(self) -> tuple[Finding, ...]:
        return self.result.findings

    @cached_property
    def document(self) -> Document:
        """What `topodiag place audit --format json` prints."""
        from topodiag.report.place.layouts import audit_json  # noqa: PLC0415 - only where it is asked for

        return audit_json(self.audit, self.findings, self.inputs)

    @property
    def headline(self) -> str:
        where = f"{self.audit.talk.world} ranks on {self.audit.nodes} nodes"
        return f"{where}, {percent(self.audit.gain)} to regain"

    def to_json(self) -> str:
        return _text(self.document)


class SolvedLayout(Answer):
    """The result of `solve`: a map from ranks to nodes and GPUs."""

    known = tables.SOLUTION

    def __init__(self, solved: Solved, inputs: tuple[Input, ...] = ()) -> None:
        self.solved = solved
        self.inputs = inputs

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        """The groups that stay split in the map that was found."""
        from topodiag.placement.solve import split_findings  # noqa: PLC0415 - only where it is asked for

        return tuple(split_findings(self.solved))

    @cached_property
    def document(self) -> Document:
        """What `topodiag place solve --format json` prints."""
        from topodiag.report.place.layouts import solution_json  # noqa: PLC0415 - only where it is asked for

        return solution_json(self.solved, self.inputs)

    @property
    def headline(self) -> str:
        solved = self.solved
        where = f"{solved.talk.world} ranks on {len(solved.place.hosts)} of {solved.cluster.nodes} nodes"
        return f"{where}, {percent(solved.gain)} faster than {solved.before_name}"

    def to_json(self) -> str:
        return _text(self.document)


def _text(document: Document, indent: int = PAGE_INDENT) -> str:
    stream = io.StringIO()
    write_json(document, stream, indent)
    return stream.getvalue()
