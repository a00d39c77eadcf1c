"""The state of nodes, and why Slurm holds some out of service: `scontrol show node`, `sinfo`, `sinfo -R` and
`sinfo -N -l`.

    NodeName=gpu-017 Arch=x86_64 CoresPerSocket=48
       State=IDLE+DRAIN ThreadsPerCore=2 TmpDisk=0 Weight=1 Owner=N/A MCS_label=N/A
       Reason=gres/gpu count reported lower than configured (7 < 8) [slurm@2024-05-06T08:11:01]

    REASON               USER      TIMESTAMP           NODELIST
    NHC: check_hw_ib:  N root      2024-05-06T08:11:01 gpu-[012,017]

Formats: Slurm 20.02 to 24.11, src/api/node_info.c, src/sinfo, src/slurmctld/node_mgr.c. Of a node that is free or
busy, the state and the generic resources are kept, and nothing is reported.

What a reason says for which a scheduler holds a node out of service.

Slurm's `Reason=` is the sentence of whoever drained the node: slurmctld's own (`gres/gpu count reported lower than
configured (7 < 8)`), LBNL's Node Health Check (`NHC: check_hw_ib: No IB port mlx5_4:1 is ACTIVE`), or a person's. The
catalogue holds the sentences; Slurm cuts them in tables.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from topodiag.evidence.page import Line, OfPage, Page
from topodiag.evidence.signatures.engine import LineMatch, verdicts
from topodiag.lazy import dataclass
from topodiag.model.events import OUT_OF_SERVICE, SCHEDULED
from topodiag.words.own_data import patterns

_LIKE = patterns("evidence/host/lines", "slurm_nodes")


def kind_of(reason: str) -> str:
    """The kind of event that a reason is; "" where somebody keeps the node free on purpose. A health check that fails
    is never one."""
    if _LIKE["on_purpose"].search(reason) is not None and not re.match(r"\s*(?:NHC|check_)\b", reason):
        return ""
    return next((answer.entry.says for answer in verdicts(reason) if isinstance(answer, LineMatch)), OUT_OF_SERVICE)


MAX_NODES = 20_000
"""Nodes kept: more than the largest systems have."""

_FIELDS = ("NodeName=", "State=", "Gres=")
_OUT = ("DRAIN", "DOWN", "FAIL", "INVAL", "NOT_RESPONDING")
"""In the states of nodes that are out of service. A star is of nodes which do not answer."""


@dataclass(frozen=True, slots=True)
class SlurmState:
    """A node, or a list of nodes: Slurm's state, generic resources and sentence, "" where not said, and the line."""

    line: Line
    nodes: str = ""
    state: str = ""
    gres: str = ""
    reason: str = ""

    @property
    def held(self) -> bool:
        """Whether Slurm holds it out of service. A sentence may be left from before."""
        return bool(self.reason) and (not self.state or "*" in self.state or _is_out(self.state))


def _is_out(state: str) -> bool:
    return any(word in state.upper() for word in _OUT)


class SlurmNodes(OfPage):
    """Nodes with their state; those that Slurm holds out of service with its reason."""

    def recognises(self, head: str) -> bool:
        lines = [line.lstrip() for line in head.split("\n")]
        return any(map(_columns, lines)) or ("State=" in head and any(line.startswith("NodeName=") for line in lines))

    def read_page(self, page: Page) -> None:
        for number, slurm in enumerate(_listed(page)):
            line, nodes, state, reason = slurm.line, slurm.nodes, slurm.state, slurm.reason
            if number >= MAX_NODES:
                line.leave("one of too many nodes")
                continue
            page.mark(line.number)
            if nodes and state:
                words = f"{nodes} is {state}" + (f": {reason}" if reason else "")
                line.report(SCHEDULED, words, host=nodes, fields={"state": state, "gres": slurm.gres, "reason": reason})
            if slurm.held and (kind := kind_of(reason)):
                line.report(kind, f"{nodes} is out of service: {reason}" if nodes else reason, host=nodes)


def _listed(page: Page) -> Iterator[SlurmState]:
    """The nodes in the order of the text."""
    shown: SlurmState | None = None
    columns: list[str] = []
    for line in page.cut_lines():
        fields = dict(word.partition("=")[::2] for word in line.text.split() if word.startswith(_FIELDS))
        match = _LIKE["reason"].search(line.text)
        reason = match[1].strip() if match is not None else ""
        if "NodeName" in fields and line.text.lstrip().startswith("NodeName="):
            if shown is not None:
                yield shown
            shown = SlurmState(line, fields["NodeName"])
        if shown is not None:
            shown = replace(shown, state=fields.get("State", shown.state), gres=fields.get("Gres", shown.gres))
            if match is not None or "State" in fields:
                shown = replace(shown, line=line, reason=reason or shown.reason)
        elif match is not None:
            yield SlurmState(line, reason=reason)
        elif header := _columns(line.text):
            columns = header
        elif columns and (listed := _of_row(columns, line)) is not None:
            yield listed
    if shown is not None:
        yield shown


def _columns(line: str) -> list[str]:
    """The columns of a header of `sinfo`, `sinfo -R` or `sinfo -N -l`, also of columns of one's own; none for another
    line."""
    names = line.split()
    wanted = "NODELIST" in names and not {"STATE", "REASON"}.isdisjoint(names) and len(names) < 14
    return names if wanted and all(name[0].isupper() and name == name.upper() for name in names) else []


def _of_row(columns: list[str], line: Line) -> SlurmState | None:
    """The nodes of a row: no column but the reason, the first or the last, holds a blank."""
    cells = (line.text.rsplit if columns[0] == "REASON" else line.text.split)(maxsplit=len(columns) - 1)
    cell = dict(zip(columns, (part.strip() for part in cells), strict=False))
    if len(cells) < len(columns) or (cell.get("TIMESTAMP", "Unknown") != "Unknown" and "T" not in cell["TIMESTAMP"]):
        return None
    if " " in cell["NODELIST"] or not cell.get("STATE", "x")[0].isalpha():
        return None  # the text goes on below the table
    state, reason = cell.get("STATE", ""), cell.get("REASON", "")
    if columns[0] == "REASON":
        state = ""  # Slurm lists reasons of what is out of service alone
    elif "REASON" not in cell and "*" in state and _is_out(state):
        reason = "not responding"
    reason = "" if reason.lower() == "none" else reason
    return SlurmState(line, cell["NODELIST"], state, cell.get("GRES", ""), reason)
