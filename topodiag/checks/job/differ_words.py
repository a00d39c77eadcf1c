"""For JOB002, JOB003 and JOB004: what a text itself says is not the same everywhere, or shared by two ranks."""

from __future__ import annotations

from typing import Any

from topodiag.checks.interface import JobCheck
from topodiag.checks.words import hosts_in, quoted
from topodiag.lazy import regex
from topodiag.model.finding import Confidence, Cost, Finding, Severity
from topodiag.model.job import Job

DIFFERS = "differs"
"""Kind of such lines; `what` of their details says what differs (grammar/job_sentences.py, `state_of`)."""
VERSION, SETTING, GPU = "version", "setting", "gpu"
_WORDS = {
    GPU: ("ranks share a GPU", "one rank on each GPU", "set the device from the local rank before init, or"
          " CUDA_VISIBLE_DEVICES for each task"),
    VERSION: ("a version is not the same everywhere", "one version on all nodes", "start the same image on all nodes"),
    SETTING: ("a setting is not the same everywhere", "one value on all ranks",
              "export settings once, in the job script; remove nccl.conf lines"
              " of single nodes"),
}  # fmt: skip

_NOT_AS_BUILT = regex(r"undefined symbol|version `|not defined in file")
_OF_RANKS = regex(
    r"\blib(?:nccl|rccl|mlx[45]|ibverbs|rdmacm|efa|uc[tpsmc]|fabric|psm2|mpi|open-rte|pmix|nvshmem|torch_cuda|c10_cuda"
    r"|sharp|hcoll)(?!-net)[\w+-]{0,40}\.so|\b(?:nccl[A-Z]|mlx[45]dv_|ibv_|uc[tps]_|MPI_|PMIx_)\w"
)
"""Libraries by which ranks talk, and their functions. NCCL's network plugin is NET005's."""

_TOO_OLD = regex(r"not supported in the installed CUDA driver|newer driver")
_BUILT_FOR = regex(r"\+cuda(\d{1,2})\.(\d{1,2})")


def not_as_built(check: JobCheck[Any], job: Job) -> list[Finding]:
    """The dynamic loader's word that a library by which ranks talk is of another version than what was built with
    it, or CUDA's that the driver is older than what NCCL was built for."""
    told = [
        event
        for event in job.events
        if event.details.get("how") == "loader" and _NOT_AS_BUILT.search(event.text) and _OF_RANKS.search(event.text)
    ]
    if not told or any("libnccl-net" in event.text for event in told):
        return _driver_behind(check, job)
    return [
        check.finding(
            Severity.ERROR,
            f"a library by which ranks talk is of another version than what was built with it: {quoted(told[0].text)}",
            observed=quoted(told[0].text, 300),
            expected="on each node the libraries that the program was built with",
            fix=(
                "`ldd` on the library that is named, on this node and where it was built: which file is taken, from"
                " which package (`rpm -qf`, `dpkg -S`)?",
                "one image, or one set of packages (rdma-core or OFED, NCCL, UCX), on all nodes",
            ),
            nodes=hosts_in(told),
            cost=Cost(share=1.0, text="the program does not start here"),
            evidence=[event.origin for event in told],
        )
    ]


def _driver_behind(check: JobCheck[Any], job: Job) -> list[Finding]:
    """CUDA's error that the driver lacks a call, in a log that shows an NCCL which was built for a newer CUDA."""
    told = [event for event in job.events if event.kind == "version" and _TOO_OLD.search(event.text)]
    for event in told:
        drivers = {p.versions.get("driver", "") for p in job.processes if p.host == event.host} - {""}
        built = [(int(found[1]), int(found[2])) for each in job.nccl_versions if (found := _BUILT_FOR.search(each))]
        if len(drivers) != 1 or not built or not (has := drivers.pop()).isdecimal():
            continue
        needs, own = min(built), (int(has) // 1000, int(has) % 1000 // 10)
        if own >= needs:
            continue
        cuda = f"{needs[0]}.{needs[1]}"
        return [
            check.finding(
                Severity.ERROR,
                f"NCCL was built for CUDA {cuda}, and the driver is of CUDA {own[0]}.{own[1]}: it lacks a call that"
                " NCCL makes",
                observed=quoted(event.text, 300),
                expected=f"a driver of CUDA {cuda} or newer, or an NCCL that was built for the driver's CUDA",
                fix=(
                    "`nvidia-smi` names the driver and its CUDA: update it, or start an image that was built for it",
                    "in a container the package cuda-compat of the image brings newer libraries of the driver, for"
                    " data center GPUs",
                ),
                nodes=[event.host] if event.host else [],
                cost=Cost(share=1.0, text="the communicator does not come up"),
                evidence=[each.origin for each in told],
                confidence=Confidence.MEDIUM,
            )
        ]
    return []


def told_to_differ(check: JobCheck[Any], job: Job, what: str) -> list[Finding]:
    """One finding for all lines of a job that say it; none without."""
    told = [event for event in job.events if event.kind == DIFFERS and event.details.get("what") == what]
    if not told:
        return []
    noun, expected, fix = _WORDS[what]
    return [
        check.finding(
            Severity.ERROR if any("ends" in event.details for event in told) else Severity.WARNING,
            f"{noun}, in the text's own words: {quoted(told[0].text)}",
            observed=quoted(told[0].text, 300),
            expected=expected,
            fix=(fix,),
            cost=Cost(
                text="the ranks share one GPU's compute and links"
                if what == GPU
                else "ranks disagree on messages or choices: init fails, or a collective hangs"
            ),
            evidence=[event.origin for event in told],
            confidence=Confidence.MEDIUM if any("ends" in event.details for event in told) else Confidence.LOW,
        )
    ]
