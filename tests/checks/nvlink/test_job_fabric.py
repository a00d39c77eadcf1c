"""NVL005 by logs: the fabric as NVML told NCCL."""

from dataclasses import replace

from tests.checks import jobs
from tests.checks.wanted import Wanted, shown
from tests.tables import examples
from topodiag.checks.nvlink.job import FabricInLog
from topodiag.model.finding import Status
from topodiag.model.job import Job, Process

LINE = "MNNVL busId 0x801000 fabric UUID 3143b15bc2cd192b.28cc9b5473fb5b93 cliqueId 0x7ffe state {} healthMask {}"
IMEX = (
    "MNNVL (cliqueSize 8) is available but not working on this system. Check the IMEX configuration (nvidia-imex-ctl"
    " -N). Set NCCL_MNNVL_ENABLE=0 to ignore this issue."
)


def said(state: int, mask: str) -> Job:
    return jobs.job(1, 1, messages=[jobs.message("mnnvl", LINE.format(state, mask))])


def test_nvlink_between_trays_that_does_not_work_is_an_error() -> None:
    wanted: Wanted = {"severity": "ERROR", "message": "*IMEX*"}
    assert shown(FabricInLog().judge(jobs.job(events=[jobs.event("cuda", IMEX)])), wanted) == wanted


@examples("state", "mask", "wanted")
def test_the_fabric_that_nccl_prints(state: int, mask: str, wanted: Wanted) -> None:
    assert shown(FabricInLog().judge(said(state, mask)), wanted) == wanted


@examples("uuids", "wanted")
def test_trays_of_a_rack(uuids: list[str], wanted: Wanted) -> None:
    assert shown(FabricInLog().judge(trays(*uuids)), wanted) == wanted


def test_a_log_without_a_fabric_is_not_judged() -> None:
    assert FabricInLog().judge(jobs.job()).status is Status.NOT_APPLICABLE


def trays(*uuids: str) -> Job:
    """A job of one tray for each fabric UUID, "" for a tray that NVML knows of none."""
    kinds = ("version", "bootstrap", "hcas")
    processes = [
        Process(
            f"n{at}",
            100 + at,
            messages=(
                *(jobs.message(kind, "x") for kind in kinds),
                *(
                    [jobs.message("mnnvl", f"MNNVL busId 0x1 fabric UUID {uuid} cliqueId 0x2 state 3 healthMask 0x0")]
                    if uuid
                    else []
                ),
            ),
        )
        for at, uuid in enumerate(uuids)
    ]
    return replace(jobs.job(len(uuids), 1), processes=tuple(processes))
