"""Processes and libraries: who died, who is behind, whose version differs, and what the others report of it."""

from __future__ import annotations

from topodiag.model.finding import Finding
from topodiag.verdict.interface import Rule
from topodiag.verdict.job_errors import JOB_FAILS, comes_from, error_is, of_number, of_store, waits_for_all
from topodiag.verdict.scene import Scene


class ProcessDied(Rule):
    """A process that ended by itself (exception, signal, memory, time limit) closes its connections: the others report
    closed peers, exhausted retries and timeouts. Its own first line is earlier than all of theirs."""

    causes = ("JOB009",)
    leads_to = ("JOB005", "JOB006", "JOB008", "NET008", *JOB_FAILS)
    because = "the other ranks lost a process that ended by itself"

    def holds(self, cause: Finding, other: Finding, scene: Scene) -> bool:
        return other.id != "JOB005" or error_is(
            other, scene, "watchdog", "timeout", "peer closed", "other", "ib completion", "connect", "cuda", "memory"
        )


class ResultsAreWrong(Rule):
    """A benchmark that checks its results ends with an error where they are wrong; the launcher reports its exit code.
    A signal, a limit of memory or of time is a fault of another kind."""

    causes = ("BEN004",)
    leads_to = ("JOB009", "BEN006", "JOB005")
    because = "the benchmark ends with an error because results are wrong"

    def holds(self, cause: Finding, other: Finding, scene: Scene) -> bool:
        return other.id != "JOB009" or "error code" in other.message


class LibraryFault(Rule):
    """A known fault of this version of the library, whose signature is in the evidence. The same program with another
    version is the control."""

    causes = ("JOB007",)
    leads_to = ("JOB005", "JOB006", "JOB009", "NET008", "NVL005", "BEN003", "BEN004", *JOB_FAILS)
    because = "this version of the library has a known fault with this signature"


class VersionsMixed(Rule):
    """Ranks with different versions disagree on the handshake or on messages: init fails or hangs."""

    causes = ("JOB002",)
    leads_to = ("JOB005", "JOB006", "NET007", *JOB_FAILS)
    because = "ranks with different versions do not understand each other"

    def holds(self, cause: Finding, other: Finding, scene: Scene) -> bool:
        return other.id != "JOB005" or error_is(other, scene, "version", "mismatch", "bootstrap", "watchdog", "timeout")


class GpuShared(Rule):
    """NCCL before 2.30 refuses two ranks on one GPU; where they share it, memory runs out first."""

    causes = ("JOB004",)
    leads_to = ("JOB005", "JOB006", "JOB009", "JOB010", *JOB_FAILS)
    because = "two processes share one GPU: NCCL refuses that, or memory runs out"

    def holds(self, cause: Finding, other: Finding, scene: Scene) -> bool:
        if other.id == "JOB009":
            return "out of memory" in other.observed
        return other.id != "JOB005" or error_is(other, scene, "duplicate gpu", "memory", "cuda")


class RanksUneven(Rule):
    """NVLink SHARP groups and some layouts need equally many ranks on each node; with 7 and 8 the group cannot be
    formed. NCCL_NVLS_ENABLE=0 is the control."""

    causes = ("JOB010",)
    leads_to = ("JOB005", "JOB006", "NET006", *JOB_FAILS)
    because = "nodes with different numbers of ranks cannot form the same groups"

    def holds(self, cause: Finding, other: Finding, scene: Scene) -> bool:
        return other.id != "JOB005" or error_is(other, scene, "cuda", "watchdog", "timeout")


class RankBehind(Rule):
    """A rank that did not enter a collective: all others wait in it until their watchdog ends them. They are innocent,
    and the rank behind reports nothing."""

    causes = ("JOB006",)
    leads_to = ("JOB005", "JOB008", *JOB_FAILS)
    because = "the others wait for the rank that is behind until their watchdog ends them"

    def holds(self, cause: Finding, other: Finding, scene: Scene) -> bool:
        return other.id != "JOB005" or error_is(other, scene, "watchdog", "timeout", "mismatch", "peer closed")


class LateArriver(Rule):
    """A rank that comes late makes the others wait: their collectives look slow, and theirs alone."""

    causes = ("JOB008",)
    leads_to = ("JOB005", "BEN001")
    because = "the others wait for a rank that comes late"

    def holds(self, cause: Finding, other: Finding, scene: Scene) -> bool:
        return other.id != "JOB005" or error_is(other, scene, "watchdog", "timeout")


class AbsentAtMeeting(Rule):
    """A process that did not come to the store or the rendezvous: who counts the others gives up, closes it, and leaves
    those that came without it. They report a store that does not answer, or wait for what rank 0 would have made."""

    causes = ("JOB001",)
    leads_to = ("JOB005", "JOB006")
    because = "who waits for a process that did not come gives up, and takes the store from the others"

    def holds(self, cause: Finding, other: Finding, scene: Scene) -> bool:
        if not comes_from(cause, scene, waits_for_all):
            return False
        if other.id == "JOB006":
            return "ncclUniqueId" in other.message
        errors = [event for event in scene.errors(other) if event is not None]
        return bool(errors) and all(of_store(event) for event in errors)


class NumbersDoNotFit(Rule):
    """Two processes with one rank, or one whose rank is not in the world: one rank is nobody's, and all wait for it.
    What NCCL says of that number is told as the first error, too."""

    causes = ("JOB001",)
    leads_to = ("JOB005",)
    because = "all others wait for a rank that no process has"

    def holds(self, cause: Finding, other: Finding, scene: Scene) -> bool:
        errors = [event for event in scene.errors(other) if event is not None]
        if not errors or not comes_from(cause, scene, of_number):
            return False
        return all(of_number(event) or event.kind in ("watchdog", "timeout") or of_store(event) for event in errors)


class ErrorKeepsRanksOut(Rule):
    """Where a job names its first error, ranks that did not come up follow from that one: a fault that cannot explain
    the error does not explain them either."""

    causes = ("JOB005",)
    leads_to = JOB_FAILS
    because = "ranks do not go on after this error"

    def holds(self, cause: Finding, other: Finding, scene: Scene) -> bool:
        told = [event.kind for event in scene.errors(cause) if event is not None]
        return bool(told) and not {"watchdog", "timeout"}.issuperset(told)


class ErrorEndsInit(Rule):
    """After the first error ranks do not come up, or stand where the error left them."""

    causes = ("JOB005",)
    leads_to = ("JOB006", *JOB_FAILS)
    because = "ranks do not go on after this error"

    def holds(self, cause: Finding, other: Finding, scene: Scene) -> bool:
        # A watchdog reports that somebody is behind: it keeps nobody from a collective.
        told = [event.kind for event in scene.errors(cause) if event is not None]
        return other.id != "JOB006" or not told or not {"watchdog", "timeout"}.issuperset(told)
