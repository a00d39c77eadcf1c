"""JOB002: versions that differ between ranks."""

from __future__ import annotations

from dataclasses import replace

from tests.checks import jobs
from topodiag.checks.job.start.versions import VersionsDiffer
from topodiag.model.finding import Severity, Status
from topodiag.model.job import Job, Process


def with_version(key: str, value: str, rank: int = 3) -> Job:
    def hook(number: int, host: int, process: Process) -> Process:
        versions = {"nccl": "2.28.9", "net plugin": "IB (v11)", **process.versions}
        return replace(process, versions={**versions, key: value} if number == rank else versions)

    return jobs.job(process=hook)


def test_equal_versions_are_clean() -> None:
    assert VersionsDiffer().judge(jobs.job()).status is Status.CLEAN


def test_another_nccl_on_one_rank_is_an_error_there() -> None:
    [finding] = VersionsDiffer().judge(with_version("nccl", "2.27.7")).findings
    assert finding.severity is Severity.ERROR
    assert finding.where.ranks == (3,)
    assert finding.where.nodes == ("n0",)


def test_another_driver_is_a_warning_and_another_cuda_build_info() -> None:
    driver = VersionsDiffer().judge(with_version("driver", "12020")).findings[0]
    assert driver.severity is Severity.WARNING
    assert "nvidia-smi" in driver.fix[0]  # no image brings the driver of a node
    assert VersionsDiffer().judge(with_version("nccl", "2.23.4+cuda12.2")).findings[0].severity is Severity.INFO


def test_another_plugin_is_not_another_version_of_one() -> None:
    assert VersionsDiffer().judge(with_version("net plugin", "Socket (v11)")).status is Status.CLEAN
    assert VersionsDiffer().judge(with_version("net plugin", "IB (v9)")).status is Status.FINDING


def test_nccls_own_warning_is_enough() -> None:
    event = jobs.event(
        "version", "Mismatched NCCL version detected : rank 1 version 22304 rank 2 version 22707", rank=1
    )
    [finding] = VersionsDiffer().judge(jobs.job(events=[event])).findings
    assert finding.severity is Severity.ERROR


def test_another_build_of_one_version_is_a_warning() -> None:
    job = with_version("git", "master 3619159")
    assert VersionsDiffer().judge(job).status is Status.CLEAN, "the others say nothing of theirs"

    def hook(number: int, host: int, process: Process) -> Process:
        return replace(
            process, versions={"nccl": "2.32.3", "git": "rel-2.32 0a1b2c3" if number == 3 else "unknown unknown"}
        )

    [finding] = VersionsDiffer().judge(jobs.job(process=hook)).findings
    assert (finding.severity, finding.where.ranks) == (Severity.WARNING, (3,))
    assert "NCCL's build differs between ranks" in finding.message


def test_another_version_is_not_told_as_another_build_too() -> None:
    def hook(number: int, host: int, process: Process) -> Process:
        version, build = ("2.30.7", "a 1") if number == 3 else ("2.32.3", "b 2")
        return replace(process, versions={"nccl": version, "git": build})

    [finding] = VersionsDiffer().judge(jobs.job(process=hook)).findings
    assert finding.severity is Severity.ERROR


NOTICE = "Mismatched NCCL git versions detected: rank 0 fingerprint 0x1f2e3d4c, rank 8 fingerprint 0x0badcafe"


def noticed(text: str) -> Job:
    def hook(number: int, host: int, process: Process) -> Process:
        notice = jobs.message("git mismatch", text)
        return replace(process, versions={"nccl": "2.32.3"}, messages=(*process.messages, notice))

    return jobs.job(process=hook)


def test_nccls_notice_of_other_builds_is_a_warning() -> None:
    [finding] = VersionsDiffer().judge(noticed(NOTICE)).findings
    assert finding.severity is Severity.WARNING
    assert "rank 8 of a communicator" in finding.message


def test_one_process_has_nothing_to_compare_with() -> None:
    assert VersionsDiffer().judge(jobs.job(1, 1)).status is Status.NOT_APPLICABLE


def test_a_version_from_rank_0_alone_leaves_it_unknown() -> None:
    def hook(number: int, host: int, process: Process) -> Process:
        return process if number == 0 else replace(process, versions={})

    assert VersionsDiffer().judge(jobs.job(process=hook)).status is Status.UNKNOWN


def worded(*texts: tuple[str, str]) -> Job:
    """Lines of the first node and of the second; rank 0 alone prints its version, 2.23.4."""

    def hook(number: int, host: int, process: Process) -> Process:
        kind, text = texts[host]
        versions = process.versions if number == 0 else {}
        return replace(process, versions=versions, messages=(*process.messages, jobs.message(kind, text)))

    return jobs.job(process=hook)


OLD = ("net plugin missing", "NET/Plugin : dlerror=.. No plugin found (libnccl-net.so), using internal implementation")
NEW = ("net plugin missing", "NET/Plugin: Could not find: libnccl-net.so. Using internal network plugin.")


def test_words_that_no_one_release_prints_tell_two_versions() -> None:
    [finding] = VersionsDiffer().judge(worded(NEW, OLD)).findings
    assert (finding.severity, finding.where.nodes) == (Severity.WARNING, ("n1",))
    assert "2.20 or earlier on ranks 8-15 (n1)" in finding.message
    assert "2.23 or later" in finding.message


def test_words_of_one_release_or_of_one_process_alone_tell_none() -> None:
    assert not VersionsDiffer().judge(worded(NEW, NEW)).findings
    assert not VersionsDiffer().judge(worded(NEW, ("affinity", "Setting affinity for GPU 0 to ffff"))).findings
    both = jobs.job(messages=[jobs.message(*OLD), jobs.message(*NEW)])  # two libraries in a process
    assert not VersionsDiffer().judge(both).findings


def test_rccl_has_words_of_its_own() -> None:
    job = worded(NEW, OLD)
    rccl = tuple(replace(process, versions={"rccl": "2.20.5"}) for process in job.processes)
    assert not VersionsDiffer().judge(replace(job, processes=rccl)).findings


def test_a_driver_that_is_too_old_is_no_difference_between_ranks() -> None:
    text = "Cuda failure 'CUDA driver version is insufficient for CUDA runtime version'"
    assert VersionsDiffer().judge(jobs.job(events=[jobs.event("version", text)])).status is Status.CLEAN
