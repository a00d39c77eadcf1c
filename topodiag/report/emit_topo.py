"""What is said beside an emitted topology file: what was done, what is gained, and what still wants attention."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from topodiag.cost.nccl.prediction import Prediction
from topodiag.cost.nccl.repair import Repair
from topodiag.report.grid import Field, draw_grid
from topodiag.report.text import Page, Part
from topodiag.report.topo_predict import GRAPHS
from topodiag.report.topo_what_if import spell_graph
from topodiag.report.units import spell_bytes, spell_us


class Emitted(Protocol):
    """The pipeline's TopoFile."""

    @property
    def version(self) -> str: ...
    @property
    def done(self) -> Sequence[str]: ...
    @property
    def repairs(self) -> Sequence[Repair]: ...
    @property
    def before(self) -> Prediction: ...
    @property
    def after(self) -> Prediction: ...
    @property
    def worse(self) -> Sequence[str]: ...


def draw_topo_file(page: Page, made: Emitted, output: str | None, *, refused: bool) -> None:
    """The account of one file, for standard error."""
    name = output or "the topology file"
    if refused:
        page.add(
            page.text(("✖", "error"), " ", (name, "strong"), "  "), ("not written: it would make things worse", "error")
        )
    else:
        words = f"NCCL {made.version} loads it" + (f"; use it with NCCL_TOPO_FILE={output}" if output else "")
        page.add(page.text(("✔", "ok"), " ", (name, "strong"), "  "), words)
    for sentence in made.done:
        page.add("  ", (sentence, "dim"))
    for each in made.repairs:
        page.add("  ", ("repaired  ", "ok"), each.words)
    rows: list[list[Part]] = [
        [title, old, (new, "doubtful") if old != new else (new, "dim")] for title, old, new in _rows(made)
    ]
    page.blank()
    draw_grid(page, (Field(""), Field("now", least=12), Field("with the file", least=12)), rows)
    page.blank()
    for sentence in made.worse:
        page.add("  ", ("worse  ", "error"), sentence)
    if refused:
        page.add("  ", ("--force writes it all the same", "dim"))
    for each in made.repairs:
        page.add("  ", ("the hardware still wants attention: ", "doubtful"), each.attention)


def _rows(made: Emitted) -> Iterator[tuple[str, str, str]]:
    before, after = made.before, made.after
    if not before.accepted:
        yield "NCCL", f"refuses it: {before.why}", "accepts it"
    for number, title in GRAPHS.items():
        old, new = spell_graph(before, number), spell_graph(after, number)
        if old or new:
            yield title, old or "none", new or "none"
    news = {(choice.collective, choice.bytes): choice for choice in after.choices}
    olds = {(choice.collective, choice.bytes): choice for choice in before.choices}
    for key, choice in news.items():
        if key[0] == "AllReduce":
            was = olds.get(key)
            took = spell_us(was.time_us) if was else "?"
            yield f"all-reduce of {spell_bytes(key[1])}", took, spell_us(choice.time_us)
