"""How far the clocks of a case can be trusted."""

from __future__ import annotations

from topodiag.model.result import Clock
from topodiag.report.grid import Columns, Field, figure
from topodiag.words.units import signed_s, spell_s

CLOCKS: Columns[Clock] = {
    Field("clock of", least=12): lambda clock: clock.source,
    Field("node", least=8): lambda clock: clock.host,
    Field("ahead", right=True): lambda clock: figure(clock.skew_s, signed_s, "not known"),
    Field("within", right=True): lambda clock: figure(clock.within_s, spell_s, "not known"),
    Field("how it is known", least=16): lambda clock: (clock.how, "dim"),
}
