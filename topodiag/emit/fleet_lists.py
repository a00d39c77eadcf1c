"""What schedulers take of a compared fleet: node lists, drain commands, conditions of node-problem-detector."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from topodiag.model.fleet import Exclusion, FleetResult, name_of
from topodiag.words.text import clean, shell_word
from topodiag.words.units import fold_hosts

MAX_REASON = 200
"""Characters of a reason: sinfo -R and kubectl describe show one line."""
CONDITION = "TopodiagFleet"
"""The type of the node condition: True where the node should get no job."""


def node_list(hosts: Sequence[str]) -> str:
    """The hosts as one node set on one line, ready for `srun --exclude=$(cat FILE)`; an empty line for none.
    Machines of one name are one node to a scheduler."""
    folded = fold_hosts(list(map(name_of, hosts))).replace(", ", ",")
    return clean(folded, limit=len(folded) + 1) + "\n"


def pass_list(result: FleetResult) -> str:
    """The nodes that jobs may get: of machines of one name all must pass."""
    out = set(map(name_of, result.failed))
    return node_list([host for host in result.passed if name_of(host) not in out])


def drain_lines(result: FleetResult) -> Iterator[str]:
    """One command of Slurm for each group of nodes with the same reasons, the worst first."""
    for exclusion in result.exclusions:
        names = node_list(exclusion.nodes).strip()
        yield (f"scontrol update {shell_word(f'nodename={names}')} state=drain"
               f" {shell_word(f'reason={_reason(exclusion)}')}")  # fmt: skip


def _reason(exclusion: Exclusion) -> str:
    (check, message), rest = exclusion.reasons[0], len(exclusion.reasons) - 1
    more = f" (+{rest} more)" if rest else ""
    return clean(f"topodiag {check}: {message}", ascii_only=True, limit=MAX_REASON - len(more)) + more


def conditions(result: FleetResult) -> Iterator[str]:
    """One JSON object a line and node: the node, and its status as node-problem-detector's exporters write it (its
    pkg/types/types.go: source, events, conditions)."""
    why = {host: dropped for dropped in result.exclusions for host in dropped.nodes}
    out = {name_of(host): dropped for host, dropped in why.items()}
    texts: set[str] = set()
    for node in result.nodes:
        name = name_of(node.host)
        exclusion = out.get(name)
        if name in texts:
            continue
        texts.add(name)
        condition = {
            "type": CONDITION,
            "status": "True" if exclusion else "False",
            "transition": node.time,
            "reason": exclusion.reasons[0][0] if exclusion else "NoDifference",
            "message": _reason(exclusion) if exclusion else "as its peers",
        }
        status = {"node": name, "source": "topodiag", "events": [], "conditions": [condition]}
        yield json.dumps(status, ensure_ascii=True)
