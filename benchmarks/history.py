"""A year of weekly captures of a fleet in a store of `topodiag fleet history`: disk, seconds to add and to ask, growth.

    python -m benchmarks.history                 500 nodes, 52 weeks
    python -m benchmarks.history 50 8            fewer

The captures are made from the facts of a captured machine, with names and serials of their own: what is measured is the
store, not the reading of bundles. Drivers are rolled out twice a year, one in a hundred nodes changes a card each
month, counters of errors grow on one part in fifty, nodes boot anew once a month. Sixteen nodes are watched, and one
port of one of them flaps. What was planted must be found, and nothing else.
"""

from __future__ import annotations

import random
import resource
import sys
import tempfile
import time
from dataclasses import replace
from functools import cache
from pathlib import Path

from topodiag.app.case.opening import one_node
from topodiag.app.history import history
from topodiag.evidence.live.watch_log import WatchLog
from topodiag.fleet.facts import facts_of
from topodiag.fleet.history.adding import Addition
from topodiag.fleet.history.store import writing_to
from topodiag.model.fleet import FactKind, NodeFact
from topodiag.model.history import Capture, FleetHistory, PartStates, Spell

WEEK_S = 7 * 86400.0
START = 1.7e9
MAX_BYTES = 1 << 30
MAX_SECONDS = 30.0
WATCHED = 16


class Fleet:
    """The state of each node from week to week."""

    def __init__(self, nodes: int, seed: int = 18) -> None:
        self.random = random.Random(seed)
        self.base = facts_of(one_node("fixture:dgx-h100-healthy").node)
        self.moving = [
            number
            for number, fact in enumerate(self.base)
            if fact.key == "NVIDIA driver" or (fact.kind is FactKind.COUNTER and "down" not in fact.key)
        ]
        self.hosts = [f"gpu{number:04}" for number in range(nodes)]
        self.generation = dict.fromkeys(self.hosts, 0)
        self.boots = {host: START - self.random.random() * 4 * WEEK_S for host in self.hosts}
        self.bad = {host: self.random.randrange(10**6) for host in self.hosts}
        self.lemon, self.narrow = self.hosts[7 % nodes], self.hosts[11 % nodes]

    def capture(self, host: str, week: int, weeks: int) -> Capture:
        """The capture of one node in one week."""
        now = START + week * WEEK_S + self.random.random() * 3600
        if self.random.random() < 0.25:
            self.boots[host] = now - 86400
        if self.random.random() < 0.0025:
            self.generation[host] += 1
        driver = f"5{50 + 20 * (week // 26)}.54.15"
        up_weeks = (now - self.boots[host]) / WEEK_S
        facts = list(self._own(host, self.generation[host]))
        for number in self.moving:
            facts[number] = self._moved(facts[number], number, host, driver, up_weeks)
        errors: tuple[str, ...] = ()
        if host == self.lemon and week % 3 == 0:
            errors = (f"NVL001 GPU{week % 8}",)
        if host == self.narrow and week == weeks - 1:
            facts = [replace(f, value="8") if (f.part, f.key) == ("gpu3", "width") else f for f in facts]
        return Capture(f"{host}-{week:04}", host, now, self.boots[host], f"{host}.tar.gz", errors, tuple(facts))

    @cache  # noqa: B019 - one fleet, which lives as long as the program
    def _own(self, host: str, generation: int) -> list[NodeFact]:
        """The facts with the serials of this node; of one card those of its generation."""
        return [
            replace(fact, value=f"{fact.value}-{host}-{generation if fact.part == 'mlx5_0' else 0}")
            if fact.kind is FactKind.IDENTITY
            else fact
            for fact in self.base
        ]

    def _moved(self, fact: NodeFact, number: int, host: str, driver: str, up_weeks: float) -> NodeFact:
        if fact.kind is FactKind.COUNTER:
            if (number + self.bad[host]) % 50:
                return fact
            return replace(fact, value=int(up_weeks * (10 + number)))
        return replace(fact, value=driver) if fact.key == "NVIDIA driver" else fact

    def watches(self, week: int) -> list[WatchLog]:
        """A week of the watched nodes: quiet, but for one port of one node that comes and goes."""
        made = []
        for number, host in enumerate(self.hosts[:WATCHED]):
            begin = START + week * WEEK_S
            states = [PartStates(f"mlx5_{n}/1", (Spell("ACTIVE", f"b{week}", 1e3, 1e3 + WEEK_S, begin),))
                      for n in range(1, 12)]  # fmt: skip
            spells = [Spell("ACTIVE", f"b{week}", 1e3, 1e3 + 6 * 86400, begin)]
            for hour in range(8 if number == 5 else 0):
                at = 1e3 + 6 * 86400 + 3600 * hour + 10
                spells.append(Spell("DOWN", f"b{week}", at, at + 60, begin + at - 1e3))
                spells.append(Spell("ACTIVE", f"b{week}", at + 70, at + 3580, begin + at - 930))
            made.append(WatchLog(host, (PartStates("mlx5_0/1", tuple(spells)), *states), end_s=begin + WEEK_S))
        return made


def fill(folder: str, nodes: int, weeks: int) -> list[float]:
    """The store of a fleet; the CPU seconds of each week's addition, without making the facts."""
    fleet = Fleet(nodes)
    spent = []
    for week in range(weeks):
        captures = [fleet.capture(host, week, weeks) for host in fleet.hosts]
        begun = time.process_time()
        with writing_to(folder) as store:
            addition = Addition(store)
            for each in captures:
                addition.capture(each)
            for log in fleet.watches(week):
                addition.watch(log, f"{log.host}-{week}")
            addition.commit()
        spent.append(time.process_time() - begun)
        print(f"\rweek {week + 1} of {weeks}", end="", flush=True, file=sys.stderr)
    print(file=sys.stderr)
    return spent


def judge(fleet: Fleet, answers: FleetHistory, weeks: int) -> list[str]:
    """What was planted and not found, and what was found and not planted."""
    wrong = []
    changed = {
        node for each in answers.findings if each.id == "FLT003" and each.severity > 1 for node in each.where.nodes
    }
    flapping = {node for each in answers.findings if each.id == "FLT004" for node in each.where.nodes}
    failing = {each.host for each in answers.failing}
    for name, found, planted in (
        ("changed", changed, {fleet.narrow}),
        ("comes and goes", flapping, {fleet.hosts[5]}),
        ("keeps failing", failing, {fleet.lemon} if weeks > 6 else set()),  # every third week, and three times
    ):
        if found != planted:
            wrong.append(f"{name}: {sorted(found)[:5]} instead of {sorted(planted)}")
    return wrong


def size_of(folder: str) -> int:
    return sum(each.stat().st_size for each in Path(folder).rglob("*") if each.is_file())


def main() -> int:
    nodes, weeks = (int(each) for each in (sys.argv[1:3] if len(sys.argv) > 2 else ("500", "52")))
    with tempfile.TemporaryDirectory(prefix="topodiag-history-") as folder:
        spent = fill(folder, nodes, weeks)
        disk = size_of(folder)
        begun = time.process_time()
        answers = history(folder, ())
        whole = time.process_time() - begun
        begun = time.process_time()
        one = history(folder, (), ["gpu0005"])
        single = time.process_time() - begun
        by_table = {each.name: size_of(str(each)) for each in sorted(Path(folder).iterdir()) if each.is_dir()}
    quarter = max(1, weeks // 4)
    wrong = judge(Fleet(nodes), answers, weeks)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{answers.captures} captures of {answers.hosts} nodes, {weeks} weeks, {len(Fleet(1).base)} facts each")
    print(
        f"disk          {disk / 1e6:.1f} MB: "
        + ", ".join(f"{name} {size / 1e6:.1f}" for name, size in by_table.items())
    )
    print(f"add a week    {sum(spent[:quarter]) / quarter:.2f} s in the first quarter, "
          f"{sum(spent[-quarter:]) / quarter:.2f} s in the last")  # fmt: skip
    print(f"ask all       {whole:.1f} s; one node {single:.1f} s ({one.captures} captures)")
    print(f"memory        {peak:.0f} MB at most, with the facts that the benchmark made")
    print(f"found         {len(answers.findings)} findings; {'as planted' if not wrong else '; '.join(wrong)}")
    return int(bool(wrong) or disk > MAX_BYTES or max(whole, single) > MAX_SECONDS)


if __name__ == "__main__":
    sys.exit(main())
