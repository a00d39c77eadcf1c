"""Who did not enter a collective that the others wait in, and nodes with different numbers of ranks where the job does
not come through with them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from topodiag.checks.interface import JobCheck, hosts_with, hosts_word, look_at, rank_word
from topodiag.checks.job.hang import dumps
from topodiag.checks.job.hang.lost_rank import BLIND, by_dead_peers, by_leaving, by_ras
from topodiag.checks.job.hang.watchdog import by_watchdog, calls_differ
from topodiag.checks.shared.job.logs import most
from topodiag.checks.shared.job.text import ask_for, world_of
from topodiag.model.finding import Confidence, Coverage, Finding, Outcome
from topodiag.model.job import Communicator, FlightRecord, Job, Operations
from topodiag.model.provenance import Origin
from topodiag.words.units import grouped, plural

HANG_KINDS = frozenset({"watchdog", "timeout", "mismatch"})
POINT_TO_POINT = frozenset({"Send", "Recv", "PutSignal", "Signal", "WaitSignal"})
"""Operations that ranks rightly call with different arguments."""

ROOTED = ("Gather", "Scatter")
"""Collectives in which only some ranks pass some arguments."""

MAX_TAIL = 64
"""Calls looked back over at most."""


class RankBehind(JobCheck, id="JOB006"):
    """JOB006: a collective some ranks did not enter: who is behind

    What it finds
        Members of a communicator that enqueued fewer operations than the others when the job hung, ranks that called
        another collective, count, type or reduction than their peers, and the same from torch's flight recorder.
        Members of a communicator that did not enter the call that splits it, in which the others wait.

    Why it matters
        A collective waits for its last member for as long as the watchdog lets it. The ranks that report the timeout
        are those that did enter it. The one to look at says nothing.

    Evidence it reads
        Operation lines (subsystem COLL): how many, and collective, count, type, reduction, root of the last ones; also
        without an Init line, where the ranks of one host show their calls from the first on.
        opCount itself only in part: NCCL raises it for operations over the network, so that it differs between healthy
        ranks. Answers of NCCL's RAS: launches by rank, ranks that left, processes that do not answer; two answers tell
        a hang from a job that runs. Peers that RAS gave up, in the log itself (subsystem RAS). Stack dumps of several
        processes (py-spy): who waits in a collective, and who elsewhere. Flight recorder dumps: process group, sequence
        number, state, and ranks that left no dump where all others wait. Torch's watchdog lines: the sign of a hang,
        ranks that wait at one number in other operations or sizes, and, where there is nothing better, the last work
        that each rank enqueued and completed; an exception of a rank that waited in an operation until its time was
        over, in any library's words. Lines of any tool that name ranks that are missing, stuck, or call something else:
        a warning. A rank whose program, or whose communicator, came to its end, and whose closed connections the others
        report; Horovod's line that a rank has finished, in a log without an error.

    When it stays silent
        The communicator was destroyed in order. Counts differ by one and nothing says that the job hung: the
        log is cut while the job runs. Sends and receives are left out, which differ by design; the collectives of a
        communicator that has both are judged where the logs hold its start. A split that half of the ranks or fewer
        entered, or all of a communicator that holds them: the log was cut there. RAS's counts move from answer to
        answer. A rank that is behind in one group because it waits in another: the rank that its group waits for is
        named alone. RAS shows no rank behind, which proves nothing: unknown. Stacks of ranks that wait for the GPU, or
        are all in the same collective: unknown. RAS gave up half of the processes or
        more, or a communicator was torn down: the job ended. Neither operations nor dumps
        are there: unknown.

    How to confirm
        py-spy dump --pid PID                          on the rank that is named: where it waits
        export TORCH_NCCL_TRACE_BUFFER_SIZE=2000 TORCH_NCCL_DUMP_ON_TIMEOUT=1      then run again: torch writes a dump

    How to fix
        Look at what the rank was doing: data loader, checkpoint, an exception that was caught, a branch that only
        some ranks take. If all ranks entered the collective, the network is at fault: JOB005, NET008.

    References
        NCCL src/enqueue.cc (ncclEnqueueCheck prints the operations), src/proxy.cc (ncclProxyStart raises opCount),
        v2.28; src/init.cc (parseCommConfig, commGetSplitInfo), v2.29; torch flight recorder,
        torch/csrc/distributed/c10d.
    """

    def observe(self, job: Job, peers: Sequence[Job]) -> Outcome:
        hung = any(event.kind in HANG_KINDS for event in job.events)
        findings = self._without_operations(job, hung)
        reported = [] if findings else [*by_watchdog(self, job)]
        counted = [communicator for communicator in job.communicators if len(communicator.operations) > 1]
        for communicator in counted:
            late = None if communicator.destroyed else self._stragglers(job, communicator, hung)
            findings += filter(None, (self._mismatch(job, communicator, hung), late))
        seen = sum(len(communicator.operations) for communicator in counted)
        total = sum(communicator.nranks for communicator in counted)
        coverage = Coverage(seen, total, "members with operations") if counted else None
        return self.any_of(job, findings or reported, coverage, unknown="" if counted or job.flight else _unseen(job))

    def _without_operations(self, job: Job, hung: bool) -> list[Finding]:
        """By all that a job leaves beside the log of its operations: the surest sources together, then the others, each
        where those before it showed nothing."""
        # Who left answers RAS no more: that it left says more.
        reports = [
            *(list(by_leaving(self, job)) or by_ras(self, job)),
            *self._from_flight(job, hung),
            *dumps.by_words(self, job),
            *dumps.by_openings(self, job),
        ]
        others = (dumps.by_stacks(self, job, hung), dumps.by_missing_dumps(self, job, hung), by_dead_peers(self, job))
        return reports or next(filter(None, map(list, others)), [])

    def _stragglers(self, job: Job, communicator: Communicator, hung: bool) -> Finding | None:
        counts = _comparable(communicator)
        if len(set(counts.values())) < 2:
            return None
        front = max(counts.values())
        late = _late(communicator, counts)
        if not late or (not hung and (len(counts) < communicator.nranks or front - min(late.values()) <= 1)):
            return None  # the logs were taken while the job ran
        lowest = min(late.values())
        worst = [at for at, count in late.items() if count == lowest]
        ahead = [at for at, count in counts.items() if count == front]
        ranks = _world(communicator, worst)
        next_op = _call(communicator.operations[ahead[0]], lowest)
        return self.finding(
            self.where(hosts_with(job, ranks), ranks=ranks),
            self.advice("behind in a hang" if hung else "behind where the log ends", front=front),
            f"{rank_word(ranks)} stopped {plural(front - lowest, 'operation')} behind the others in"
            f" {communicator.label}",
            observed=f"{plural(lowest, 'operation')} on {rank_word(ranks)},"
            f" {front} on {rank_word(_world(communicator, ahead))}" + (f"; not entered: {next_op}" if next_op else ""),
            fix=look_at(job, ranks),
            evidence=_evidence(communicator, worst),
            coverage=Coverage(len(counts), communicator.nranks, "members with operations"),
            confidence=Confidence.HIGH if hung and len(counts) == communicator.nranks else Confidence.MEDIUM,
        )

    def _mismatch(self, job: Job, communicator: Communicator, hung: bool) -> Finding | None:
        """The first of the last calls in which members with equally many calls differ."""
        counts = _comparable(communicator)
        total, _ = Counter(counts.values()).most_common(1)[0] if counts else (0, 0)
        same = {at: communicator.operations[at] for at, count in counts.items() if count == total}
        tails = {id(ops.tail): ops for ops in same.values()}  # members that called the same share one tail
        for number in range(max(0, total - MAX_TAIL), total):
            calls = {tail: _call(ops, number) for tail, ops in tails.items()}
            calls = {tail: call for tail, call in calls.items() if call and not call.startswith(ROOTED)}
            if len(set(calls.values())) > 1:
                called = [(call, at) for at, ops in same.items() if (call := calls.get(id(ops.tail)))]
                return calls_differ(
                    self,
                    job,
                    grouped((call, world_of(communicator, at)) for call, at in called),
                    f"call {number + 1} of {total} of {communicator.label}",
                    sure=hung,
                    evidence=_evidence(communicator, list(same)),
                    coverage=Coverage(len(same), communicator.nranks, "members with equally many operations"),
                )
        return None

    def _from_flight(self, job: Job, hung: bool) -> Iterable[Finding]:
        records = {record.rank: record for record in job.flight}
        entries = dumps.entries_of_flight(job)
        fronts = list(dumps.fronts_of(job))
        for front in dumps.roots_of(fronts):
            yield self._late_in_flight(job, front, hung)
        for front in fronts:
            if not front.waits:
                yield from self._differs_in_flight(job, front.words, entries[front.group, front.members], records)

    def _late_in_flight(self, job: Job, at: dumps.Front, hung: bool) -> Finding:
        lowest, front = min(at.last.values()), max(at.last.values())
        worst = sorted(rank for rank, seq in at.last.items() if seq == lowest and rank not in at.elsewhere)
        records = {record.rank: record for record in job.flight}
        waiting, operation, state = at.entries[0]
        return self.finding(
            self.where(hosts_with(job, worst), ranks=worst),
            self.advice("behind by the recorder", front=front, size=at.size, group=at.group),
            f"{rank_word(worst)} did not enter {operation} number {front} of process group {at.words}",
            sure=hung or front - lowest > 1,
            observed=f"last sequence number {lowest} on {rank_word(worst)};"
            f" {front} on {rank_word(sorted(rank for rank, _, _ in at.entries))}, state {state}",
            fix=look_at(job, worst),
            cost=f"{plural(len(at.entries), 'rank')} wait in that collective"
            + (f", {plural(len(at.follow), 'rank')} in other groups for some of these" if at.follow else ""),
            evidence=[records[rank] for rank in [*worst, waiting] if rank in records],
            coverage=Coverage(len(at.last), at.size, "flight recorder dumps"),
        )

    def _differs_in_flight(
        self, job: Job, words: str, by_rank: Mapping[int, Sequence[tuple[int, str, str]]],
        records: Mapping[int, FlightRecord],
    ) -> Iterable[Finding]:  # fmt: skip
        """The first sequence number at which ranks of one group recorded different collectives."""
        rows = ((seq, operation, rank) for rank, ops in by_rank.items() for seq, operation, _ in ops)
        of_all = (row for row in rows if not any(word in row[1].lower() for word in ("send", "recv", "coalesced")))
        for seq, called in sorted(grouped((seq, (operation, rank)) for seq, operation, rank in of_all).items()):
            calls = grouped(called)
            if len(calls) > 1:
                fewest_first = [rank for ranks in sorted(calls.values(), key=len) for rank in ranks][:4]
                evidence = [records[rank] for rank in fewest_first if rank in records]
                yield calls_differ(self, job, calls, f"number {seq} of process group {words}", evidence=evidence)
                return


def _unseen(job: Job) -> str:
    """Why nothing shows who is behind."""
    if job.ras:
        return BLIND
    if job.stacks:
        return "the stacks show nobody in a collective that another one is not in"
    return f"no operations and no flight recorder: {ask_for(job, hang=True)}, TORCH_NCCL_TRACE_BUFFER_SIZE=2000"


def _late(communicator: Communicator, counts: Mapping[int, int]) -> dict[int, int]:
    """The members with fewer calls than the front, as far as their logs can be trusted to have all of them."""
    front, started = max(counts.values()), communicator.started
    late = {at: count for at, count in counts.items() if count < front}
    if any(_sends(ops) for ops in _different(communicator)):
        # Sends move opCount too: only a log that has the start of the communicator has all of its calls.
        return {at: count for at, count in late.items() if at < len(started) and started[at]}
    # A rank whose log lost its start has fewer calls, and the same last opCount.
    newest = max(communicator.operations[at].last for at, count in counts.items() if count == front)
    return {at: count for at, count in late.items() if communicator.operations[at].last < newest}


def _comparable(communicator: Communicator) -> dict[int, int]:
    """The number of collective calls of each member; members send and receive by design unequally.

    Not opCount: NCCL raises it only for operations that its proxy works on, so that GPUs without a part in the
    network stay behind (ncclProxyStart, src/proxy.cc v2.28).
    """
    if any(_sends(ops) and not ops.calls_by_collective for ops in _different(communicator)):
        return {}
    return {at: _collectives(ops) for at, ops in communicator.operations.items() if ops.calls > 0}


def _different(communicator: Communicator) -> Iterable[Operations]:
    """One of those members' operations that share their sums and their tail."""
    return {
        (id(ops.bytes_by_collective), id(ops.calls_by_collective), id(ops.tail)): ops
        for ops in communicator.operations.values()
    }.values()


def _sends(ops: Operations) -> bool:
    return not POINT_TO_POINT.isdisjoint({*ops.bytes_by_collective, *(call[1] for call in ops.tail)})


def _collectives(ops: Operations) -> int:
    return ops.calls - sum(count for name, count in ops.calls_by_collective.items() if name in POINT_TO_POINT)


def _call(ops: Operations, number: int) -> str:
    """What a member called as its collective of this number, from 0; "" where its tail does not reach back so far."""
    tail = [call for call in ops.tail if call[1] not in POINT_TO_POINT]
    at = number - (_collectives(ops) - len(tail))
    if not 0 <= at < len(tail):
        return ""
    _, function, elements, dtype, redop, root = tail[at]
    rest = f" root {root}" if function in ("Broadcast", "Reduce") else ""
    return f"{function} of {elements} elements of type {dtype}, op {redop}{rest}"


def _world(communicator: Communicator, members: Sequence[int]) -> list[int]:
    """World ranks of members; those that are unknown are left out."""
    return sorted(rank for at in members if (rank := world_of(communicator, at)) >= 0)


def _evidence(communicator: Communicator, members: Sequence[int]) -> list[Origin | None]:
    return [communicator.operations[at].origin for at in members if at in communicator.operations]


class RanksUneven(JobCheck, id="JOB010"):
    """JOB010: ranks per node differ where NCCL or the layout needs them equal

    What it finds
        A communicator over nodes with different numbers of ranks whose init does not end while NVLink SHARP (NVLS)
        is being set up.

    Why it matters
        The multicast groups of the nodes have different sizes then, and the ranks wait for each other for ever: no
        error, no timeout of NCCL.

    Evidence it reads
        `nRanks .. nNodes .. localRanks ..` and Init lines: ranks of each node; NVLS lines; Init COMPLETE; watchdogs.

    When it stays silent
        Equal numbers. Init completed and nothing hung: uneven nodes are slower, but they work. NVLink SHARP is off
        or absent. Ranks that left no line could be on any node: then NCCL's own counts of local ranks decide, and
        without those the answer is unknown.

    How to confirm
        export NCCL_NVLS_ENABLE=0                      then run again: passes, where NVLink SHARP is what hangs

    How to fix
        Give each node the same number of ranks, or set NCCL_NVLS_ENABLE=0 for this job.

    References
        github.com/NVIDIA/nccl/issues/2385 (7 and 8 ranks on two nodes).
    """

    def observe(self, judged: Job, peers: Sequence[Job]) -> Outcome:
        world = judged.world
        if world is None:
            return self.unknown(judged, f"no communicator in the log: {ask_for(judged)}")
        by_host = _ranks_by_host(judged, world)
        if len(by_host) < 2:
            return self.not_applicable(judged, "ranks of one node, or NCCL's counts of them are not in the log")
        coverage = Coverage(sum(by_host.values()), world.nranks, "ranks counted")
        if len(set(by_host.values())) == 1:
            return self.clean(judged, f"{plural(next(iter(by_host.values())), 'rank')} on each node", coverage)
        hung = any(event.kind in HANG_KINDS for event in judged.events)
        if world.init_complete or (bool(world.completed.any()) and not hung):
            return self.clean(judged, "ranks per node differ, and init completed", coverage)
        multicast = _multicast(judged)
        if multicast is None:
            return self.clean(judged, "ranks per node differ, and nothing shows NVLink SHARP", coverage)
        usual = most(by_host.values())
        texts = [host for host, count in by_host.items() if count != usual]
        words = ", ".join(f"{count} on {host}" for host, count in list(by_host.items())[:6])
        finding = self.finding(
            self.where(list(by_host), ranks=[int(rank) for rank in world.known[:4096]]),
            "uneven",
            f"ranks per node differ ({words}), and init does not end while NVLink SHARP is set up",
            observed=f"{hosts_word(texts)} {'has' if len(texts) == 1 else 'have'} another number of ranks than"
            f" {plural(usual, 'rank')}",
            evidence=[multicast],
            settings=(("NCCL_NVLS_ENABLE", "0"),),
        )
        return self.any_of(judged, [finding], coverage)


def _ranks_by_host(job: Job, world: Communicator) -> dict[str, int]:
    """Ranks of the world by host: all of them where each left a line, else NCCL's own counts."""
    if len(world.known) == world.nranks:
        return dict(Counter(rank.host for rank in job.ranks))
    return dict(world.local_ranks)


def _multicast(job: Job) -> Origin | None:
    """A line by which NVLink SHARP is being set up; None where it is off, or no line shows it."""
    given = [process.settings.get("NCCL_NVLS_ENABLE") for process in job.processes]
    if any(setting is not None and setting.value == "0" for setting in given):
        return None
    lines = ((process, line) for process in job.processes for line in process.said("nvls"))
    return next((line.origin or process.origin for process, line in lines if "multicast" in line.details), None)
