"""Job scripts and descriptions of pods beside a measured run say what was set for it."""

from pathlib import Path

from fixtures.whole import CASES
from tests.tables import examples
from topodiag.api import diagnose

TABLE = next(case for case in CASES if case.name == "srun-peer-to-peer-off").files["bench.out"].split("\n", 2)[2]


@examples("name", "text")
def test_what_a_script_sets_explains_the_run_beside_it(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / "bench.out").write_text(TABLE)
    (tmp_path / name).write_text(text)
    verdict = diagnose([str(tmp_path)]).verdict
    assert verdict.causes[0].finding.id == "ENV001"
    assert verdict.causes[0].finding.evidence[0].source.endswith(name)


def test_scripts_that_disagree_say_nothing(tmp_path: Path) -> None:
    (tmp_path / "bench.out").write_text(TABLE)
    for number in (0, 1):
        (tmp_path / f"{number}.sh").write_text(f"export NCCL_P2P_DISABLE={number}\n./all_reduce_perf\n")
    verdict = diagnose([str(tmp_path)]).verdict
    assert "ENV001" not in [cause.finding.id for cause in verdict.causes]
