"""How heavy the page of `--html` is, and how long it takes to write: one node, jobs, and fleets of many nodes.

    python benchmarks/page.py [--nodes 1000,10000]

The fleets are one captured node under as many names, each fiftieth with a fault of its own. Budgets: 250 kB for a node,
2 MB for 1,000 nodes, 6 MB for 10,000.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections.abc import Callable
from dataclasses import replace

from topodiag.app.diagnose import diagnose
from topodiag.app.logs import logs
from topodiag.app.scan import scan
from topodiag.model.finding import Cost, Finding, Outcome, Severity, Status, Where
from topodiag.model.provenance import Origin
from topodiag.model.result import Result
from topodiag.report.html.page import html_of, result_sheet
from topodiag.report.job.table import draw_logs
from topodiag.report.table import draw_result
from topodiag.report.verdict.table import draw_diagnosis

ODD = 50
BUDGETS = {1: 250_000, 1_000: 2_000_000, 10_000: 6_000_000}


def fleet(count: int) -> Result:
    """A scan of so many nodes that are alike but for every fiftieth."""
    base = scan(["fixture:dgx-h100-healthy"])
    (node,) = base.nodes
    nodes = tuple(replace(node, host=f"node{number:05}") for number in range(count))
    findings = tuple(
        Finding(
            "NVL001", Severity.ERROR, f"GPU{at % 8} has 12 of 18 NVLinks active", "12 links up", "18 links",
            ("reset all GPUs of the node",), where=Where(nodes=(f"node{at:05}",), gpus=(f"GPU{at % 8}",)),
            cost=Cost(123.6, 1 / 3), evidence=(Origin("json/nvml.json", at + 1, "state: 0"),),
        )
        for at in range(0, count, ODD)
    )  # fmt: skip
    outcomes = tuple(
        replace(each, node=node.host) for node in nodes for each in base.outcomes if each.status is Status.CLEAN
    )
    inputs = tuple(replace(each, path=f"{node.host}/{each.path}") for node in nodes for each in base.inputs[:4])
    return Result(inputs, nodes, outcomes or (Outcome("NVL002", Status.CLEAN),), findings)


def main() -> int:
    """Print the table; exit code 1 where a page is over its budget."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", default="1000,10000", help="sizes of fleets, with commas")
    sizes = [int(word) for word in parser.parse_args().nodes.split(",") if word]
    cases: list[tuple[str, int, Callable[[], str]]] = [
        ("one node with a fault", 1, lambda: _scan("fixture:dgx-h100-gpu3-12of18-nvlink")),
        ("one healthy node", 1, lambda: _scan("fixture:dgx-h100-healthy")),
        ("a slow job on two nodes", 1, _diagnosis),
        ("logs of 16 ranks", 1, lambda: html_of(result_sheet("logs", logs(["fixture:socket-fallback"]), draw_logs))),
    ]
    cases += [(f"{size:,} nodes", size, lambda size=size: _fleet(size)) for size in sizes]
    print(f"{'page':<26}{'kB':>8}{'budget':>8}{'JSON':>8}{'style':>8}{'script':>8}{'s':>8}")
    over = 0
    for name, nodes, make in cases:
        start = time.process_time()
        text = make()
        took = time.process_time() - start
        size = len(text.encode())
        budget = BUDGETS[min((each for each in BUDGETS if each >= nodes), default=10_000)]
        parts = [sum(map(len, re.findall(pattern, text, re.DOTALL))) for pattern in (
            r'<script type="[^"]*" id="data".*?</script>', r"<style>.*?</style>", r"<script>.*?</script>")]  # fmt: skip
        kb = "".join(f"{each / 1000:>8,.0f}" for each in (size, budget, *parts))
        print(f"{name:<26}{kb}{took:>8.1f}{'  over' if size > budget else ''}")
        over += size > budget
    return 1 if over else 0


def _scan(path: str) -> str:
    return html_of(result_sheet("scan", scan([path]), draw_result))


def _diagnosis() -> str:
    return html_of(result_sheet("diagnose", diagnose(["fixtures/incidents/half-the-links-of-one-gpu"]), draw_diagnosis))


def _fleet(size: int) -> str:
    return html_of(result_sheet("scan", fleet(size), draw_result))


if __name__ == "__main__":
    sys.exit(main())
