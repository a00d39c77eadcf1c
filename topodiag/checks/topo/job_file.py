"""A topology file that NCCL refused, by a job's log."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from topodiag.checks.interface import JobCheck
from topodiag.checks.shared.job import logs
from topodiag.model.finding import Coverage, Finding, Outcome
from topodiag.model.job import Event, Job

REFUSED = ("topology has wrong version", "xml parse", "xml topology", "xml : ", "xml: ", "could not parse xml",
           "too many xml", " of node ")  # fmt: skip
"""Words of NCCL's complaints about a topology file (src/graph/xml.cc, topo.cc)."""


class TopologyFileRefused(JobCheck, id="TOP001"):
    """TOP001: NCCL refuses the topology file that it was given

    What it finds
        An NCCL_TOPO_FILE that NCCL read and did not accept: another version than 1, a tag or attribute that it does
        not know, text that is not XML as NCCL reads it. As a warning, an NCCL_TOPO_FILE that is not there: NCCL goes on
        with what it sees itself, which in a virtual machine is not how the GPUs and NICs are connected.

    Why it matters
        The first communicator fails with an internal error or `invalid usage`, on every rank of the node: the job does
        not start. The line is a warning far above the last line of the log.

    Evidence it reads
        Warnings of graph/xml.cc and graph/topo.cc in the log, and the file that `Loading topology file` or
        NCCL_TOPO_FILE names.

    When it stays silent
        No such warning. A file that does not exist and that no setting names: NCCL looks for one of its own.

    How to confirm
        head -3 "$NCCL_TOPO_FILE"                         `<system version="1">` comes first
        xmllint --noout "$NCCL_TOPO_FILE"                 NCCL takes less than XML: no comments inside tags, no entities

    How to fix
        Write the file again with NCCL_TOPO_DUMP_FILE on a healthy node of the same machine type, or unset
        NCCL_TOPO_FILE and delete /var/run/nvidia-topologyd/virtualTopology.xml, the file that is read without it.

    References
        NCCL src/graph/xml.cc (ncclTopoGetXmlFromFile), src/graph/xml.h (NCCL_TOPO_XML_VERSION).
    """

    def observe(self, judged: Job, peers: Sequence[Job]) -> Outcome:
        refused = tuple(filter(_refuses, judged.events))
        if not refused:
            return self.any_of(judged, self._not_there(judged, list(_missing(judged))))
        lines = logs.said_by(judged, "topo file")
        files = [line.text.rpartition("file ")[2] for line in lines if "Loading topology" in line.text]
        given = [process.settings.get("NCCL_TOPO_FILE") for process in judged.processes]
        files += [setting.value for setting in given if setting is not None]
        words = refused[0].text.strip()
        processes = {(event.host, event.pid) for event in refused}
        finding = self.of_events(
            refused,
            "refused in the log",
            f"NCCL refuses {files[0] if files else 'the topology file'}: {words}",
            coverage=Coverage(len(processes), len(judged.processes), "processes"),
        )
        return self.any_of(judged, [finding])

    def _not_there(self, job: Job, missing: Sequence[tuple[logs.Line, str]]) -> Iterator[Finding]:
        for _, name in missing[:1]:
            yield self.of_events(
                [line for line, _ in missing],
                "file not there",
                f"NCCL_TOPO_FILE={name} is not there: NCCL goes on with the topology that it sees itself",
                observed=f"Could not open XML topology file {name}",
                coverage=Coverage(len(missing), len(job.processes), "processes"),
            )


def _missing(judged: Job) -> Iterator[tuple[logs.Line, str]]:
    """Line and path of each process whose NCCL_TOPO_FILE could not be opened."""
    for line in logs.said_by(judged, "topo file"):
        given = judged.processes[line.process].settings.get("NCCL_TOPO_FILE") if line.process >= 0 else None
        if given is not None and line.text.startswith("Could not open") and given.value in line.text:
            yield line, given.value


def _refuses(event: Event) -> bool:
    """Whether a line is NCCL's own refusal of a topology file that is there."""
    of_topology = event.kind == "topology" or "graph/xml" in event.place
    text = event.text.lower()
    return not event.secondary and of_topology and any(words in text for words in REFUSED) and "not open" not in text
