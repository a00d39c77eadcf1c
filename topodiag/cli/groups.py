"""The groups of commands: where each command lives, and its line in the help. Its module loads when it runs."""

from __future__ import annotations

import click

from topodiag.cli import LazyGroup


@click.group(
    cls=LazyGroup,
    subcommand_metavar="PATH... | COMMAND [ARGS]...",
    of_paths="bench.judge:judge",
    places={
        "plan": ("bench.plan:plan", "Plan few runs that find bad links and nodes."),
        "run": ("bench.run:run", "Run a plan, or continue it."),
        "read": ("bench.read:read", "Show which nodes, NICs and rails the runs of a plan found slow."),
    },
)
def bench() -> None:
    """Check whether a measured bandwidth is normal: compare collectives with what this machine should reach.

    PATH is output of nccl-tests (text or JSON, of any version), a folder of it, or - for standard input.

    \b
    Examples
      topodiag bench all_reduce.txt
      topodiag bench results/ --system dgx-h100
      topodiag bench plan --nodelist gpu[001-064] -o plan.json
    """


@click.group(
    cls=LazyGroup,
    places={
        "collect": ("fleet.collect:collect", "Run the collector on many nodes and bring their bundles back."),
        "manifest": ("fleet.manifest:manifest", "Write the Kubernetes Job or DaemonSet that runs the collector."),
        "compare": ("fleet.compare:compare", "Find the nodes that differ from their peers, and those to exclude now."),
        "history": (
            "fleet.history:history",
            "Show what changed over time, which links come and go, which nodes keep failing.",
        ),
    },
)
def fleet() -> None:
    """Collect the evidence of many nodes, compare each node with its peers, and keep the history.

    \b
    First steps
      topodiag fleet collect --nodelist gpu[001-200] --to monday/
      topodiag fleet compare monday/ --fail-list bad
      topodiag fleet history /srv/history monday/
    """


@click.group(
    cls=LazyGroup,
    places={
        "audit": ("place.audit:audit", "Price a layout by dimension, and compare it with the best possible."),
        "solve": ("place.solve:solve", "Find the map from ranks to nodes and GPUs with the shortest step."),
        "emit": ("place.emit:emit", "Write a map as hostfile, rankfile, SLURM_HOSTFILE and others."),
    },
)
def place() -> None:
    """Check, optimise and write rank placement.

    \b
    Examples
      # a job that ran, by its NCCL logs
      topodiag place audit --log job.log
      # one that does not run yet
      topodiag place audit --nodes 32 --tp 8 --pp 4 --rule cyclic
      # a map on the nodes at hand
      topodiag place solve --topology topology.conf --exclude gpu07 --tp 8
      # drawn, before and after
      topodiag place solve --log job.log --picture
    """


@click.group(
    cls=LazyGroup,
    places={
        "show": ("topo.show:show", "Draw the tree of a topology file."),
        "check": ("topo.check:check", "Check whether NCCL loads a topology file, and whether it fits the machine."),
        "predict": ("topo.predict:predict", "Predict what NCCL chooses: channels, algorithms, bandwidth."),
        "what-if": ("topo.what_if:what_if", "Predict what a fault, a repair or a setting changes."),
        "diff": ("topo.diff:diff", "Compare two machines."),
    },
)
def topo() -> None:
    """Check, predict, change, draw and compare topology files, by the rules of NCCL.

    A topology is a file that NCCL wrote (NCCL_TOPO_DUMP_FILE) or reads (NCCL_TOPO_FILE), a bundle of `topodiag scan`,
    XML of hwloc's lstopo, or fixture:NAME.
    """


@click.group(
    cls=LazyGroup,
    places={
        "link": ("model.link:link", "Estimate the time of one buffer on each kind of link."),
        "collective": ("model.collective:collective", "Compare a collective under two placements."),
        "hierarchy": ("model.hierarchy:hierarchy", "Compare flat and hierarchical all-reduce by size."),
        "step": ("model.step:step", "Estimate a training step: what each parallel dimension costs."),
    },
)
def model() -> None:
    """Estimate the best time of a message, a collective or a training step, by the alpha-beta model of the links.

    T = alpha + bytes / beta: alpha in us per message, beta in GB/s (1e9 bytes per second) of one GPU in one direction.
    """


@click.group(
    cls=LazyGroup,
    places={
        "nccl-topo": (
            "emit.nccl_topo:nccl_topo",
            "Write an NCCL_TOPO_FILE: of a node, of a virtual machine, or repaired.",
        ),
        "nccl-conf": ("emit.nccl_conf:nccl_conf", "Write an nccl.conf that fixes findings."),
        "picture": ("emit.picture:picture", "Draw a node as SVG, PNG, PDF or for Graphviz."),
    },
)
def emit() -> None:
    """Write files that apply a fix. topodiag reads each file back and checks it before it writes it."""
