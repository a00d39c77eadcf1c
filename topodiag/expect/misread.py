"""What would make an impossible bandwidth possible: other ranks, another placement, another machine than assumed."""

from __future__ import annotations

from collections.abc import Iterator

from topodiag.expect.setup import Setup
from topodiag.expect.wires import Wires
from topodiag.model.bench import BenchRun, Hypothesis


def misread(run: BenchRun, setup: Setup | Wires, measured: float) -> Iterator[Hypothesis]:
    """The readings of a run of which `measured` GB/s would be no wonder."""
    if setup.nodes is not None and setup.nodes > 1:
        words = "the ranks share fewer nodes than assumed, so that less of the traffic crosses the network"
        where = "hostname of every rank (srun -l hostname, mpirun --display-map)"
        weight = 0.6 if any("cut short" in note or "do not list" in note or "does not list" in note
                            for note in setup.assumed) else 0.35  # fmt: skip
        yield Hypothesis(words, measured, weight, (f"{setup.nodes} nodes were assumed",), (where,), "")
    place = (
        "said by the device list" if len(run.devices) == run.nranks else run.nranks_why or "not said by a device list"
    )
    yield Hypothesis(
        "another number of ranks than assumed: bus bandwidth is algorithm bandwidth times a factor of it",
        measured,
        0.1 if len(run.devices) == run.nranks else 0.3,
        (f"{run.nranks} ranks, {place}",),
        ("the `Using devices` list of nccl-tests, complete",),
        "",
    )
    yield Hypothesis(
        f"another machine than {setup.machine}: faster links or more NICs",
        measured,
        0.5 if str(setup.confidence) == "low" else 0.2,
        tuple(setup.assumed[:2]),
        ("topodiag scan --save node.tar.gz on a node, then topodiag bench --machine node.tar.gz",),
        "",
    )
