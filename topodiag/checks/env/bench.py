"""Settings that the command of a measured run gives, and that explain why it is slow."""

from __future__ import annotations

from collections.abc import Sequence

from topodiag.checks.interface import BenchCheck
from topodiag.checks.shared.bench_text import place, title
from topodiag.model.bench import Benchmark, SettingPrice
from topodiag.model.finding import Cost, Finding, Outcome, Severity
from topodiag.words.units import in_gbs


class CostlySettingOfRun(BenchCheck, id="ENV001"):
    """ENV001 by the command that started a measured run: `mpirun -x`, `srun --export`, `export`, `docker run -e`."""

    def observe(self, judged: Benchmark, peers: Sequence[Benchmark]) -> Outcome:
        given = [self._slows(judged, setting) for setting in judged.settings if setting.origin is not None]
        if given:
            return self.with_findings(judged, given)
        if not judged.run.env:
            return self.not_applicable(judged, "no command and no log of this run shows its settings")
        if judged.expected is None:
            return self.unknown(judged, "its machine is not known, so what its settings cost is not known either")
        return self.clean(judged, "no setting of its command explains a loss")

    def _slows(self, judged: Benchmark, price: SettingPrice) -> Finding:
        without = f"{in_gbs(price.without_gbs)} without"
        reach = f"{without} it" if price.with_gbs is None else f"{in_gbs(price.with_gbs)} with it alone, {without}"
        lost = price.without_gbs - (price.with_gbs if price.with_gbs is not None else judged.fit.plateau_gbs or 0.0)
        return self.finding(
            self.where(judged.run.hosts),
            self.advice("setting of a run", setting=price.name),
            f"{price.name}={price.value[:60]} slows {title(judged.run)}: the model gives {reach}",
            severity=Severity.ERROR if judged.severe else Severity.WARNING,
            observed=f"{price.name}={price.value[:80]} in the command ({place(judged)})",
            cost=Cost(lost, lost / price.without_gbs, "bus bandwidth, by the model with and without the setting"),
            evidence=(price, judged.run),
            settings=((price.name, None),),
        )
