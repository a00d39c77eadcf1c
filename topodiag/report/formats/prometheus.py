"""Prometheus text exposition, for node_exporter's textfile collector.

Every enabled check has its series, 0 too, because a series that is absent says nothing. Labels are bounded by the
catalogue and the nodes in evidence; ranks, processes and messages never become labels.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import TextIO

from prometheus_client import generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from topodiag.checks import registry
from topodiag.model.finding import Severity, Status
from topodiag.model.result import Result
from topodiag.report.interface import Style
from topodiag.version import __version__
from topodiag.words.text import clean


def write(result: Result, stream: TextIO, _: Style, clock: Callable[[], float] = time.time) -> None:
    """`--format prometheus`. The clock is a parameter, so that the output can be pinned."""
    stream.write(generate_latest(_Families(result, clock())).decode("ascii", errors="backslashreplace"))


class _Families(Collector):
    def __init__(self, result: Result, now: float) -> None:
        self._result = result
        self._now = now

    def collect(self) -> Iterator[Metric]:
        yield self._findings()
        yield self._statuses()
        about = "Lines that say that something is wrong, and that no finding explains."
        yield GaugeMetricFamily("topodiag_unexplained", about, sum(line.count for line in self._result.troubles()))
        about = "When this report was written, Unix time."
        yield GaugeMetricFamily("topodiag_run_timestamp_seconds", about, self._now)
        build = GaugeMetricFamily("topodiag_build_info", "Version of topodiag; always 1.", labels=["version"])
        build.add_metric([__version__], 1)
        yield build

    def _findings(self) -> Metric:
        """Findings on each node; one that names no node counts on every node."""
        about = "Findings of a check on a node, 0 when there are none."
        family = GaugeMetricFamily("topodiag_finding", about, labels=["id", "severity", "node"])
        hosts = list(dict.fromkeys(node.host for node in self._result.nodes))
        counts: Counter[tuple[str, Severity, str]] = Counter()
        for finding in self._result.findings:
            for host in finding.where.nodes or hosts:
                counts[finding.id, finding.severity, host] += 1
        ids = dict.fromkeys((*registry.ids(), *(finding.id for finding in self._result.findings)))
        names = (*hosts, *(host for _, _, host in counts))
        labels = {host: clean(host, ascii_only=True, limit=253) for host in names}
        for check in ids:
            for severity in sorted(Severity, reverse=True):
                for host, label in labels.items():
                    family.add_metric([check, str(severity), label], counts[check, severity, host])
        return family

    def _statuses(self) -> Metric:
        about = "Nodes on which a check came to this status."
        family = GaugeMetricFamily("topodiag_check_status", about, labels=["id", "status"])
        counts = Counter((outcome.check, outcome.status) for outcome in self._result.outcomes)
        for check in registry.ids():
            for status in Status:
                family.add_metric([check, status.value], counts[check, status])
        return family
