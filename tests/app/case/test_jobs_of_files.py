"""Files of a job: numbers in their names, and what scripts and launchers' output set for it."""

from pathlib import Path

from fixtures.whole import CASES
from fixtures.whole.case import nccl_start
from tests.files import laid
from tests.tables import examples, with_texts
from topodiag.api import diagnose
from topodiag.app.case.build import open_case
from topodiag.app.case.job_numbers import job_number
from topodiag.model.verdict import State


@examples("name", "number")
def test_the_number_of_a_job_stands_in_the_names_that_a_scheduler_gives(name: str, number: str) -> None:
    assert job_number(name) == number


@examples("texts", "states")
def test_each_number_is_a_job(tmp_path: Path, texts: dict[str, str], states: dict[str, State]) -> None:
    laid(tmp_path, {name: with_texts(text, __file__) for name, text in texts.items()})
    verdict = diagnose(str(tmp_path)).verdict
    assert {job.name: job.state for job in verdict.jobs} == states


# --- what scripts and launchers' output beside the log of a job set for it


LOG = "\n".join(
    line.replace("network IB", "network Socket").replace("NET/IB/", "NET/Socket/").replace("/GDRDMA", "")
    for line in nccl_start(["a1", "a2"], 2)
    if "NET/IB : Using" not in line
)
SCRIPT = "#!/bin/bash\n#SBATCH -N 2\nexport NCCL_IB_DISABLE={value}\nsrun python train.py\n"


def given(folder: Path, **files: str) -> set[tuple[str, str, str]]:
    """Name, value and file of the settings that a job has beside files."""
    laid(folder, {"nccl.log": f"{LOG}\n"} | {name.replace("_", "."): text for name, text in files.items()})
    [job] = open_case([str(folder)]).jobs
    settings = [setting for process in job.processes for setting in process.settings.values()]
    return {
        (setting.name, setting.value, Path(setting.origin.source).name)
        for setting in settings
        if setting.origin is not None
    }


@examples("name", "text")
def test_what_a_launchers_file_sets_is_a_setting_of_the_job_whose_log_is_another_file(
    tmp_path: Path, name: str, text: str
) -> None:
    assert given(tmp_path, **{name: text}) == {("NCCL_IB_DISABLE", "1", name.replace("_", "."))}


@examples("files")
def test_files_that_disagree_advise_or_unset_say_nothing(tmp_path: Path, files: dict[str, str]) -> None:
    assert given(tmp_path, **files) == set()


def test_what_the_log_of_the_job_shows_itself_comes_first(tmp_path: Path) -> None:
    first = "a1:41000:41900 [0] NCCL INFO NCCL_IB_DISABLE set by environment to 0.\n"
    rows = given(tmp_path, more_log=first, job_sh=SCRIPT.format(value=1))
    assert ("NCCL_IB_DISABLE", "0", "more.log") in rows


# --- job scripts and descriptions of pods beside a measured run say what was set for it -----------------------

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
