"""What the RDMA devices of a job reported. A plugin that did not load is in plugin.py."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from topodiag.checks.interface import JobCheck, hosts_in, hosts_word, quoted, rank_word, ranks_in
from topodiag.checks.shared.job.first_error import refused_over_iwarp
from topodiag.checks.shared.job.logs import Line, named_by
from topodiag.checks.shared.job.text import ask_for, met, others_fell_first
from topodiag.checks.shared.phrases import phrase_in
from topodiag.lazy import regex
from topodiag.model.finding import Confidence, Coverage, Finding, Outcome, Severity
from topodiag.model.job import Event, Job
from topodiag.words.own_data import own_data
from topodiag.words.units import fold_runs, grouped, plural

FATAL_EVENT = regex(r"(?<!non-)\bfatal\b|catastrophic|\bdevice removed\b|\berr(?:or)?\b", re.I)
"""In the driver's words for what happened, not in NCCL's for all events that are not fatal (`Got async error event: SM
change`, 2.23 to 2.27)."""

FLUSHED = 5
"""IBV_WC_WR_FLUSH_ERR: what is left in the queue after another error."""

Events = Sequence[Event]


class RdmaErrors(JobCheck, id="NET008"):
    """NET008: RDMA devices report errors

    What it finds
        Work that completed with an error, asynchronous events, ports that went down, and queue pairs that could not be
        connected: which HCA, towards which peer and GID, folded by kind.

    Why it matters
        By default NCCL does not recover: the communicator fails, and the other ranks wait until a watchdog ends the
        job.

    Evidence it reads
        `Got completion from peer .. with status=12 .. hca mlx5_3`, `mlx5_0:1 Got async event : port error`,
        `Call to ibv_modify_qp failed with 110 Connection timed out, on dev mlx5_5:1, .. remote GID ..`.

    When it stays silent
        A GID table that changes before ranks are connected. Flushed work (status 5) where another status was seen: it
        follows from that one. No line shows that ranks connected, or ranks lost others whose logs are not there:
        unknown.

    How to confirm
        ibstat HCA; perfquery -x; mlxlink -d HCA -c          counters and signal of the port that is named
        dmesg | grep mlx5

    How to fix
        By status. 12 (retries exceeded): the path to that peer, so cable, transceiver, switch, routes; on RoCE the GID
        index, VLAN and flow control; then NCCL_IB_TIMEOUT. 13: the peer hangs. 4 and 10: memory registration
        (nvidia-peermem, driver). 11: the peer's device.

    References
        rdma-core libibverbs/verbs.h (ibv_wc_status); NCCL src/transport/net_ib/p2p.cc, init.cc v2.30; nccl issue 1737.
    """

    def observe(self, judged: Job, peers: Sequence[Job]) -> Outcome:
        completions = _of_nccl([event for event in judged.events if event.kind == "ib completion"])
        ports = [event for event in judged.events if event.kind in ("ib async", "port")]
        failed = [event for event in judged.events if event.details.keys() & {"errno", "refused"}]
        pairs = _of_nccl([event for event in failed if event.level != "UNWIND"])
        pairs = [event for event in pairs if not refused_over_iwarp(judged, event)]
        gids = _gids_changed(judged)
        unseen = f"ranks lost others, whose logs are not there; {ask_for(judged)}" if others_fell_first(judged) else ""
        unseen = unseen if met(judged) else "no line shows that ranks connected, over RDMA or otherwise"
        gids_changed = (self._gids(host, devices) for host, devices in gids.items())
        findings = [*self._of_events(judged, completions, ports, pairs), *gids_changed]
        return self.any_of(judged, findings, unknown=unseen)

    def _of_events(self, job: Job, completions: Events, ports: Events, pairs: Events) -> Iterator[Finding]:
        """Completions by status, asynchronous events by what they are, queue pairs by errno."""
        by_status = grouped((_status(event), event) for event in completions)
        if len(by_status) > 1:
            by_status.pop(FLUSHED, None)
        for status, events in sorted(by_status.items()):
            yield self._completion(job, status, events)
        for what, events in grouped((_what(event), event) for event in ports).items():
            yield self._async(what, events)
        refusals = [event.details.get("errno", "").strip() or event.details.get("refused", "") for event in pairs]
        for errno, events in grouped(zip(refusals, pairs, strict=True)).items():
            yield self._pair(errno, events)

    def _gids(self, host: str, devices: Mapping[str, Line]) -> Finding:
        return self.finding(
            self.where([host] if host else [], nics=list(devices)),
            "gids changed",
            f"{host or 'a node'}: the GID table of {fold_runs(list(devices))} changed while ranks were connected",
            evidence=devices.values(),
        )

    def _pair(self, errno: str, events: Sequence[Event]) -> Finding:
        """Queue pairs that could not be connected: on RoCE the driver asks for the peer's address at that moment. With
        them the work that ended without an answer on the same path."""
        unanswered = sum(event.count for event in events if event.kind == "ib completion")
        hcas = _values(events, "hca")
        gids = _values(events, "remote_gid")
        known = phrase_in("errno", errno.lower())
        device = fold_runs(hcas[:4]) if hcas else "an RDMA device"
        what = f"{device} cannot connect to {', '.join(gids[:2]) or 'its peer'}: {errno or 'refused'}"
        if any(event.details.get("fault") == "gid" for event in events):
            what = f"no GID can be read of {device} at the index that is asked for: {errno}"
        return self.of_events(
            events,
            "pair of hosts",
            f"{_who(events)}: {what}",
            self.where(hosts_in(events), ranks=ranks_in(events), nics=hcas, links=gids[:16]),
            observed=quoted(events[0].text)
            + (f"; {plural(unanswered, 'completion')} without an answer on the same path" if unanswered else ""),
            fix=(known.says, known.fix) if known is not None else self.steps("gid and driver"),
            # libfabric's line does not say over which provider it went.
            confidence=Confidence.MEDIUM if all("provider" in e.details for e in events) else Confidence.HIGH,
        )

    def _completion(self, job: Job, status: int, events: Sequence[Event]) -> Finding:
        known = own_data("checks/shared/phrases")["completion"].get(str(status), {})
        name = known.get("says", "completion error")
        fix = (known["fix"],) if "fix" in known else self.steps("log of the device")
        libfabric = status < 0 and any("provider" in event.details for event in events)
        if libfabric:
            name, fix = "work over libfabric ended with an error", self.steps("security group")
        hcas = _values(events, "hca")
        peers = _values(events, "peer")
        gids = _values(events, "remote_gid")
        count = sum(event.count for event in events)
        place = f" on {fold_runs(hcas[:4])}" if hcas else ""
        towards = f" towards {', '.join(peers[:3])}" if peers else ""
        vendor = sorted({event.details["vendor_err"] for event in events if event.details.get("vendor_err")})
        return self.of_events(
            events,
            "completion error",
            f"{_who(events)}: {name}"
            + ("" if libfabric else f" (status {status if status >= 0 else 'unknown'})")
            + f"{place}{towards}",
            self.where(hosts_in(events), ranks=ranks_in(events), nics=hcas, links=peers[:16]),
            observed=f"{plural(count, 'completion')} with an error"
            + (f", vendor error {', '.join(vendor[:3])}" if vendor else "")
            + (f", peer GID {', '.join(gids[:2])}" if gids else ""),
            fix=(*fix, *self.steps("who ended first" if libfabric else "counters of the port")),
            coverage=Coverage(len({(e.host, e.pid) for e in events}), len(job.processes), "processes"),
        )

    def _async(self, what: str, events: Sequence[Event]) -> Finding:
        hcas = _values(events, "hca")
        fatal = FATAL_EVENT.search(what) or any("fatal" in event.details for event in events)
        passing = not fatal and what.startswith(tuple(own_data("checks/network/names")["passing"]))
        return self.of_events(
            events,
            "passing event of a device" if passing else "event of a device",
            f"{_who(events)}: {what}" + (f" on {fold_runs(hcas[:4])}" if hcas else ""),
            self.where(hosts_in(events), ranks=ranks_in(events), nics=hcas),
            severity=Severity.ERROR if fatal else Severity.INFO if passing else Severity.WARNING,
            confidence=Confidence.HIGH if hcas else Confidence.MEDIUM,
        )


def _gids_changed(job: Job) -> dict[str, dict[str, Line]]:
    """By host the devices whose table changed after the process had connected; before, the change costs nothing."""
    changed: dict[str, dict[str, Line]] = {}
    for line in named_by(job, "nic", "gid change"):
        connected = job.processes[line.process].said("connected") if line.process >= 0 else ()
        places = [message.origin for message in connected]
        where = line.origin
        if where is not None and any(
            place is not None and place.source == where.source and (place.line or 0) < (where.line or 0)
            for place in places
        ):
            changed.setdefault(line.host, {}).setdefault(line.details["nic"], line)
    return changed


def _who(events: Sequence[Event]) -> str:
    """The hosts that report; the ranks where only those are known."""
    hosts = hosts_in(events)
    ranks = ranks_in(events)
    return hosts_word(hosts) or (rank_word(ranks) if ranks else "a node")


def _status(event: Event) -> int:
    """The completion's status, by its number or by the name that verbs has for it; -1 if the text has neither."""
    if (status := event.details.get("status", "")).isdecimal():
        return int(status)
    by_number, text = own_data("checks/shared/phrases")["completion"], event.text.lower()
    return next((int(number) for number, known in by_number.items() if known["says"] in text), -1)


def _values(events: Sequence[Event], name: str) -> list[str]:
    """What the events name, in order."""
    return list(dict.fromkeys(event.details[name] for event in events if event.details.get(name)))


def _what(event: Event) -> str:
    """The event in the driver's words: `port error`."""
    return event.details.get("event", "").strip()[:60] or event.text.strip().partition("\n")[0][:80] or event.kind


def _of_nccl(events: list[Event]) -> list[Event]:
    """NCCL's own lines; what an application repeats of them counts where they are lost."""
    return [event for event in events if event.level != "APP"] or events
