"""Jobs from the facts of all files: who ran where, in which communicators, and what they said."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from topodiag.evidence.nccl_log.grammar.spoken import COMMAND, STATED
from topodiag.evidence.nccl_log.grammar.system_print import Print
from topodiag.evidence.nccl_log.rebuild import events, places
from topodiag.evidence.nccl_log.rebuild.comms import ConnectionCollector, FieldCollector, first_prints, owned_texts
from topodiag.evidence.nccl_log.rebuild.frame import Frame, groups, whole_hosts
from topodiag.evidence.nccl_log.rebuild.groups import Comm, choices_apart, find_comms, find_jobs, find_openings
from topodiag.evidence.nccl_log.rebuild.members import Member, Processes, find_members, find_processes
from topodiag.evidence.nccl_log.rebuild.process import GDR_OFF, OF_DEVICES, Text, commanded, process_of
from topodiag.evidence.nccl_log.rebuild.roles import RolesOfJobs
from topodiag.evidence.nccl_log.tables.facts import BATCH_ROWS, Facts, SourceFile, Table
from topodiag.evidence.nccl_log.tables.saved import give_back
from topodiag.model.connections import no_connections
from topodiag.model.job import Communicator, Event, Job, Process, Rank
from topodiag.model.layout import Layout
from topodiag.model.provenance import MAX_QUOTE, Origin
from topodiag.words.units import grouped, most_of


def rebuild(
    facts: Facts,
    files: Sequence[SourceFile],
    layout: Layout | None = None,
    described: Mapping[tuple[int, ...], str] | None = None,
) -> tuple[Job, ...]:
    """Jobs by their first file; one without ranks when processes printed and no communicator began. `described` are
    torch's words for process groups by their world ranks (`roles.descriptions`)."""
    return _Builder(Frame(whole_hosts(facts), files), layout, described or {}).jobs()


class _Builder:
    def __init__(self, frame: Frame, layout: Layout | None, described: Mapping[tuple[int, ...], str]) -> None:
        self.frame, self.roles = frame, RolesOfJobs(layout, described)
        self._rest()
        self.processes: Processes = find_processes(frame)
        self.by_file = self.processes.by_file()
        self.only_of_file = {file: next(iter(which)) for file, which in self.by_file.items() if len(which) == 1}
        """The process that alone prints to a file."""
        self.members: list[Member] = find_members(frame, self.processes)
        self.inferred = not self.members
        if self.inferred:
            self.members = places.inferred_members(frame, self.processes)
            self.comms = [Comm(self.members[0].nranks, list(range(len(self.members))))] if self.members else []
        else:
            self.comms = find_comms(self.members, self.processes)
        self.groups = find_jobs(self.comms, self.members) or [[]]
        """The communicators of each job; one job has none where no communicator began."""
        self.comm_of = np.full(len(self.members) + 1, -1, np.int64)
        """By member, and -1 behind the last for -1, no member."""
        for number, comm in enumerate(self.comms):
            self.comm_of[comm.members] = number
        self.rank_of = np.array([member.rank for member in self.members], np.int64)
        self.host_of = [self.processes.host[member.process] for member in self.members]
        kind = places.InferredPlaces if self.inferred else places.Places
        self.places = kind(frame, self.processes, self.members)
        self.job_of_process = self._jobs_of_processes()
        self._rest()
        self.texts = self._texts()
        self.commanded = commanded(frame, self.processes)
        self.names, self.openings = find_openings(frame, self.processes, self.members)
        self.lone_prints = self._lone_prints()
        self.fields = self._hear()

    def _rest(self) -> None:
        if self.frame.connection_rows > BATCH_ROWS:
            give_back()

    def jobs(self) -> tuple[Job, ...]:
        spans = self._spans()
        order = [number for *_, number in spans]
        are_disjoint = all(one[1] < two[0] for one, two in pairwise(spans))
        happened = self._events([(first, number) for first, _, number in spans] if are_disjoint else [])
        drafts = {number: self._draft(number, happened.get(number, [])) for number in order}
        self._rest()
        gathered = self._gather(drafts)
        joined = [self._with_connections(drafts.pop(number), gathered.pop(number)) for number in order]
        self.roles.check()
        self._rest()
        return tuple(replace(job, name=f"job {i}" if len(joined) > 1 else "job") for i, job in enumerate(joined))

    def _spans(self) -> list[tuple[tuple[int, int], tuple[int, int], int]]:
        """The jobs in the order in which they begin: file and offset of the first and the last member of each."""
        files, rows = self.frame["threads"]["file"], []
        speaks = self.processes.host or len(self.frame["event"]) or (~self.frame["text"].is_word("kind", *STATED)).any()
        for number, job in enumerate(self.groups if self.comms or speaks else ()):
            members = [i for comm in job for i in self.comms[comm].members]
            placed = [(int(files[self.members[i].thread]), self.members[i].offset) for i in members] or [(0, 0)]
            rows.append((min(placed), max(placed), number))
        return sorted(rows)

    def _jobs_of_processes(self) -> list[int]:
        """Job of each process; those that began no communicator go with the job of their host, else the first."""
        homes = [-1] * len(self.processes.host)
        by_host: dict[str, int] = {}
        for number, job in enumerate(self.groups):
            for comm in job:
                for i in self.comms[comm].members:
                    homes[self.members[i].process] = number
                    by_host.setdefault(self.host_of[i], number)
        return [by_host.get(host, 0) if job < 0 else job for job, host in zip(homes, self.processes.host, strict=True)]

    def _hear(self) -> list[dict[str, Any]]:
        of = self.places.of
        sizes = [comm.nranks for comm in self.comms]
        hearing = FieldCollector(self.frame, self.comm_of, self.rank_of, sizes, self.host_of)
        if not self.comms:
            return hearing.fields
        hearing.channels(of("channels"))
        hearing.rings(of("ring"), of("order"))
        hearing.trees(of("tree"))
        hearing.prints(of("print"))
        hearing.choices(of("choice"))
        self._rest()
        tails = hearing.tails(of("tail"))
        hearing.operations(of("op"), tails)
        self._rest()
        hearing.timings(of("timing"))
        hearing.texts(of("text"))
        return hearing.fields

    def _texts(self) -> dict[int, list[Text]]:
        """Different texts by process, as they were first printed; lines without a head go to the one process of their
        file."""
        rows = self.frame["text"]
        thread, offset = rows["thread"], rows["offset"]
        files = self.frame["threads"]["file"][thread]
        owner = self.processes.of(thread, offset)
        for row in np.flatnonzero((owner < 0) & ~rows.is_word("kind", COMMAND)).tolist():
            owner[row] = self.only_of_file.get(int(files[row]), -1)
        kept: dict[int, list[Text]] = {}
        for own, kind, text, file, line, count in owned_texts(self.frame, owner, np.lexsort((offset, files))):
            placed = kind not in OF_DEVICES or own not in kept or GDR_OFF in text
            origin = Origin(file, line, text[:MAX_QUOTE]) if placed else None
            kept.setdefault(own, []).append((kind, text, origin, count))
        return kept

    def _lone_prints(self) -> dict[int, Print]:
        """By process, its first print of which the log does not say the communicator."""
        rows = self.frame["print"]
        process = self.processes.of(rows["thread"], rows["offset"])
        lone = np.flatnonzero((self.places.of("print") < 0) & (process >= 0))
        order = lone[np.argsort(rows["offset"][lone], kind="stable")]
        return first_prints(self.frame, zip(order.tolist(), process[order].tolist(), strict=True))

    def _process(self, number: int) -> Process:
        host, pid = self.processes.host[number], self.processes.pid[number]
        process = process_of(host, pid, self.texts.get(number, []), self.commanded.get(number, {}))
        lone, waits = self.lone_prints.get(number), self.openings.get(number)
        process = process if waits is None else replace(process, opening=waits)
        return process if lone is None else replace(process, system=lone.system, graphs=lone.graphs)

    def _files(self, own: set[int]) -> tuple[str, ...]:
        """Those in which these processes print; all of them where no line has a head."""
        held = {file for file, which in self.by_file.items() if not own.isdisjoint(which)}
        names = self.frame.files
        return tuple(names[file] for file in sorted(held) if 0 <= file < len(names)) if own else tuple(names)

    def _files_alone(self, number: int) -> frozenset[int] | None:
        """Files to which the processes of one job alone print; None where there is one job."""
        if len(self.groups) < 2:
            return None
        jobs = {file: {self.job_of_process[process] for process in which} for file, which in self.by_file.items()}
        return frozenset(file for file, own in jobs.items() if own == {number})

    def _draft(self, number: int, happened: list[Event]) -> Job:
        """A job without its connections and what these tell."""
        group = self.groups[number]
        own = [p for p, job in enumerate(self.job_of_process) if job == number]
        place = {process: i for i, process in enumerate(own)}
        processes = tuple(map(self._process, own))
        ranks = self._ranks(group, place)
        index = {number: i for i, number in enumerate(group)}
        communicators = tuple(self._communicator(number, i, index) for number, i in index.items())
        complete = bool(group) and self.comms[group[0]].root and not self.inferred
        hosts = tuple(sorted(({process.host for process in processes} | {rank.host for rank in ranks}) - {""}))
        placed = {rank.process for rank in ranks}
        by_process = grouped(((rank.host, rank.pid), rank.rank) for rank in ranks)
        return Job(
            name="job",
            world_size=self._world_size(communicators, len(ranks), happened, complete=complete),
            ranks=ranks,
            processes=processes,
            communicators=communicators,
            connections=no_connections(),
            hosts=hosts,
            nccl_versions=places.versions(self.frame, processes, first=number == 0),
            events=tuple(events.ranked(event, by_process) for event in happened),
            subsystems=places.subsystems(self.frame),
            unplaced=tuple(i for i in range(len(processes)) if i not in placed),
            notes=(places.untold(self.inferred),) if communicators and not complete else (),
            files=self._files(set(own)),
            choices_apart=choices_apart(self.frame, self.processes, self.places.of("choice"), self.comm_of, own),
            library=places.library(self.frame, processes, happened),
            size_told=complete,
            stated=places.stated(self.frame, self._files_alone(number)),
        )

    def _world_size(
        self, communicators: Sequence[Communicator], ranks: int, happened: Sequence[Event], *, complete: bool
    ) -> int:
        """What NCCL was told; without a communicator what torch's ranks say where they meet, -1 unknown."""
        if complete:
            return communicators[0].nranks
        if communicators:
            return -1 if self.inferred else ranks
        return events.world_met(happened)

    def _with_connections(self, job: Job, gathered: ConnectionCollector) -> Job:
        """The job with its connections, and the roles of its communicators."""
        counted = gathered.transports()
        communicators = tuple(
            replace(communicator, transports=counted.get(communicator.index, {})) for communicator in job.communicators
        )
        complete = bool(job.communicators) and not job.notes
        rank_hosts = {rank.rank: rank.host for rank in job.ranks}
        communicators, misfit = self.roles.assign(communicators, job.world_size, rank_hosts, complete=complete)
        notes = (*job.notes, misfit) if misfit else job.notes
        return replace(job, communicators=communicators, connections=gathered.connections(), notes=notes)

    def _ranks(self, group: Sequence[int], place: Mapping[int, int]) -> tuple[Rank, ...]:
        ranks: dict[int, Rank] = {}
        for number in group:
            comm = self.comms[number]
            for i in comm.members:
                member = self.members[i]
                world = comm.world.get(member.rank, -1)
                if world >= 0 and world not in ranks:
                    ranks[world] = Rank(
                        world, self.host_of[i], self.processes.pid[member.process], member.cuda_dev, member.nvml_dev,
                        events.bus_id_of(member.bus_id), place.get(member.process, -1), self._said_at(member),
                    )  # fmt: skip
        return tuple(ranks[rank] for rank in sorted(ranks))

    def _said_at(self, member: Member) -> Origin:
        return Origin(self.frame.file_of(member.thread), member.line)

    def _communicator(self, number: int, i: int, index: Mapping[int, int]) -> Communicator:
        comm, fields = self.comms[number], self.fields[number]
        size = max(comm.nranks, 0)
        own = [self.members[m] for m in comm.members]
        rank = self.rank_of[comm.members]
        seated = (rank >= 0) & (rank < size)
        world = np.array([comm.world.get(value, -1) for value in rank.tolist()], np.int64)

        def by_rank(values: Sequence[float], unknown: float) -> npt.NDArray[Any]:
            """The values of the members by their ranks; of several of one rank the largest."""
            column = np.full(size, unknown)
            np.fmax.at(column, rank[seated], np.array(values, column.dtype)[seated])
            return column

        first = min(own, key=lambda member: (member.rank, member.offset))
        mnnvl = {member.mnnvl for member in own if member.mnnvl >= 0}
        return Communicator(
            index=i,
            nranks=size,
            ranks=by_rank(world.tolist(), -1),
            name=next((self.names[m] for m in comm.members if m in self.names), ""),
            parent=index.get(comm.parent, -1),
            color=first.color,
            split=first.split,
            comm_id=first.comm_id,
            func=first.func,
            nodes=most_of((member.nodes for member in own if member.nodes > 0), -1),
            hosts=tuple(sorted({self.processes.host[member.process] for member in own})),
            mnnvl=(1 in mnnvl) if mnnvl else None,
            started=by_rank([member.started for member in own], False),
            completed=by_rank([member.completed for member in own], False),
            completed_ts=by_rank([member.complete_ts for member in own], math.nan),
            local_ranks={self.processes.host[m.process]: m.local_ranks for m in own if m.local_ranks > 0},
            destroyed=sum(member.destroyed for member in own),
            aborted=sum(member.aborted for member in own),
            torn_down=tuple(world[(world >= 0) & [member.destroyed for member in own]].tolist()),
            origin=self._said_at(first),
            inferred=self.inferred,
            **{"init_s": np.full(size, np.nan), **fields},
        )

    def _gather(self, drafts: Mapping[int, Job]) -> dict[int, ConnectionCollector]:
        """Connections by job, with their communicator."""
        collectors = {
            number: ConnectionCollector(self.frame, job, self.groups[number], len(self.comms), self.processes.host)
            for number, job in drafts.items()
        }
        jobs = np.array(self.job_of_process, np.int64)
        self.places.seat(self.comms, self.comm_of)
        for rows in self.frame.connections() if jobs.size else ():
            process = self.processes.of(rows["thread"], rows["offset"])
            member = self.places.of_connections(rows, process)
            comm = self.comm_of[member]
            owner = np.where(process >= 0, jobs[process], -1)
            if (owner == owner[0]).all() and owner[0] >= 0:  # most logs are of one job
                collectors[int(owner[0])].add(rows, slice(None), comm, process)
                continue
            for number, chosen in groups(owner):
                collectors[number].add(rows, chosen, comm, process)
        return collectors

    def _events(self, runs: Sequence[tuple[tuple[int, int], int]]) -> dict[int, list[Event]]:
        """Events by job, in the order of time where all have it, else by file and offset. `runs`: where each begins."""
        rows = self.frame["event"]
        process = self.processes.of(rows["thread"], rows["offset"])
        files = self.frame["threads"]["file"][rows["thread"]]
        member, ends = self.places.of("event"), events.ends_of(self.frame)
        by_job: dict[int, list[Event]] = {}
        for row in events.few(rows, np.lexsort((rows["offset"], files)).tolist()):
            owner = int(process[row])
            if owner < 0:
                owner = self.only_of_file.get(int(files[row]), -1)
            event = self._event(rows, row, owner, int(member[row]))
            file, last = int(files[row]), int(rows["last_offset"][row])
            event = events.marked(event, last, *ends.get(file, (0, 1 << 62)))
            begun = (number for first, number in reversed(runs) if first[0] == file and first <= (file, last))
            by_job.setdefault(self.job_of_process[owner] if owner >= 0 else next(begun, 0), []).append(event)
        return {number: events.in_time(events.uncaught(own)) for number, own in by_job.items()}

    def _event(self, rows: Table, row: int, owner: int, member: int) -> Event:
        level, text, label = rows.word("level", row), rows.word("text", row), rows.word("label", row)
        kind, secondary, details = events.classify(level, text)
        place = rows.word("place", row)
        pod = {"unit": place[4:]} if place.startswith("pod ") else {}
        rank = -1
        if level == "APP":
            rank = events.rank_of(label, text)
        elif member >= 0:
            rank = self.comms[int(self.comm_of[member])].world.get(self.members[member].rank, -1)
        ts, last = float(rows["ts"][row]), float(rows["last_ts"][row])
        return Event(
            kind=kind, text=text, host=self.processes.host[owner] if owner >= 0 else "",
            pid=self.processes.pid[owner] if owner >= 0 else -1, rank=rank, place=place, label=label,
            ts=None if math.isnan(ts) else ts, last_ts=None if math.isnan(last) else last,
            count=int(rows["count"][row]), level=level, secondary=secondary, details={**pod, **dict(details)},
            origin=self.frame.origin(rows, row, text[:MAX_QUOTE]),
        )  # fmt: skip
