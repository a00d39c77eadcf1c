"""JOB002: versions that differ between ranks."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tests.checks import jobs
from tests.checks.wanted import Wanted, shown
from tests.tables import examples
from topodiag.checks.job.start.versions import VersionsDiffer
from topodiag.model.job import Process


def other(key: str, value: str) -> Callable[[int, int, Process], Process]:
    """Rank 3 prints another version than the others."""

    def hook(number: int, host: int, process: Process) -> Process:
        versions = {"nccl": "2.28.9", "net plugin": "IB (v11)", **process.versions}
        return replace(process, versions={**versions, key: value} if number == 3 else versions)

    return hook


def prints(third: dict[str, str], **others: str) -> Callable[[int, int, Process], Process]:
    """What rank 3 prints of its versions, and what the others do."""
    return lambda number, host, process: replace(process, versions=third if number == 3 else others)


def first_alone(number: int, host: int, process: Process) -> Process:
    return process if number == 0 else replace(process, versions={})


def noticed(text: str) -> Callable[[int, int, Process], Process]:
    notice = jobs.message("git mismatch", text)
    return lambda number, host, process: replace(
        process, versions={"nccl": "2.32.3"}, messages=(*process.messages, notice)
    )


def worded(*texts: tuple[str, str]) -> Callable[[int, int, Process], Process]:
    """Lines of the first node and of the second; rank 0 alone prints its version, 2.23.4."""

    def hook(number: int, host: int, process: Process) -> Process:
        versions = process.versions if number == 0 else {}
        return replace(process, versions=versions, messages=(*process.messages, jobs.message(*texts[host])))

    return hook


def of_rccl(*texts: tuple[str, str]) -> Callable[[int, int, Process], Process]:
    hook = worded(*texts)
    return lambda number, host, process: replace(hook(number, host, process), versions={"rccl": "2.20.5"})


HOOKS: dict[str, Any] = {
    "other": other, "prints": prints, "first_alone": first_alone,
    "noticed": noticed, "worded": worded, "of_rccl": of_rccl,
}  # fmt: skip


@examples("given", "wanted")
def test_versions_that_differ_between_ranks(given: jobs.Given, wanted: Wanted) -> None:
    assert shown(VersionsDiffer().judge(jobs.of_row(given, **HOOKS)), wanted) == wanted
