"""ENV001 by the command of a measured run."""

from dataclasses import replace

from tests.verdict.judged import measured
from topodiag.checks.env.bench import CostlySettingOfRun
from topodiag.model.bench import Benchmark
from topodiag.model.finding import Status


def run(*, env: bool = True, machine: bool = True) -> Benchmark:
    benchmark = measured()
    given = {"NCCL_P2P_DISABLE": "1"} if env else {}
    return replace(benchmark, run=replace(benchmark.run, env=given), expected=benchmark.expected if machine else None)


def status(benchmark: Benchmark) -> Status:
    return CostlySettingOfRun().judge(benchmark).status


def test_what_settings_cost_is_known_only_on_a_known_machine() -> None:
    assert status(run()) is Status.CLEAN
    assert status(run(machine=False)) is Status.UNKNOWN
    assert status(run(env=False)) is Status.NOT_APPLICABLE
