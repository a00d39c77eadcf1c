"""Lines of any text that say that the network is set up wrongly or does not lead to a peer: of ping, netcat and the
infiniband-diags, of a site's health script, of people's notes.

Each line becomes an event of which `checks/reported.py` makes a finding of low confidence. What ping says of packets
that are too long explains that none of them came back.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

from topodiag.evidence.interface import Blob, Parsed
from topodiag.evidence.network.hosts_apart import hosts_apart
from topodiag.evidence.network.idle_ports import idle_ports
from topodiag.evidence.network.no_provider import no_provider
from topodiag.evidence.network.own_name import own_name_apart
from topodiag.evidence.network.port_info import is_answer, short_ports
from topodiag.evidence.network.setup_words import MAX_LINE, setup_fault
from topodiag.evidence.network.unlisted import unlisted
from topodiag.evidence.network.unopened import unopened
from topodiag.evidence.network.unshared import OF_PLUGIN, unshared
from topodiag.evidence.network.ways_apart import ways_apart
from topodiag.evidence.sentences import Sentences, event
from topodiag.model.system import REPORTED, TOLD_OF, KernelEvent
from topodiag.model.topics import Topic

_OF_PLUGIN = re.compile(r"libnccl-net\S{0,40}\.so|libnccl-tuner\S{0,40}\.so|\bofi-nccl\b|nccl[-_]rdma[-_]sharp")
_NOT_FOUND = re.compile(r"^[ \t]{1,16}lib[\w.+-]{1,60}\.so[\w.]{0,20} => not found[ \t]*$", re.M)
"""What `ldd` says of a library."""
_ANSWERED = re.compile(r"\bbytes from \S{1,80}: icmp_seq=")
"""One answer to ping: the ones before were lost while addresses were resolved."""
_PINGED = re.compile(r"icmp_seq=.{0,40}[Uu]nreachable|packets transmitted")
_JSON = re.compile(r"\s{0,64}[\[{]\s{0,64}[\"{]")
_OBJECT = re.compile(r"\{[^{}]{8,900}\}")
MOST_OBJECTS = 4096
_MTU = f"{TOLD_OF}mtu"
_APART = (unshared, own_name_apart, no_provider, short_ports, idle_ports)
"""What several lines say together, of one host or one link."""


class NetworkWords(Sentences):
    """What lines say of MTU, flow control, partitions, GIDs, the subnet manager and ways to peers."""

    kind = "network-words"
    speaks_of = frozenset({Topic.SERVICES})
    trust = 15
    most = 50
    a_piece = "lines that speak for themselves"
    quiet_is_news = True

    def recognises(self, head: str) -> bool:
        lines = head.split("\n")
        return (
            any(setup_fault(line[:MAX_LINE]) for line in lines)
            or any(setup_fault(said) for _, said in _objects(head))
            or bool(hosts_apart(lines) or ways_apart(lines) or any(unlisted(lines)))
            or OF_PLUGIN in head
            or is_answer(head)
            or any(True for each in (unopened, *_APART) for _ in each(lines))
            or (_OF_PLUGIN.search(head) is not None and _NOT_FOUND.search(head) is not None)
        )

    def event_of(self, line: str) -> tuple[str, str] | None:
        fault = setup_fault(line[:MAX_LINE])
        return (f"{TOLD_OF}{fault}", " ".join(line.split())[:300]) if fault else None

    def parse(self, blob: Blob) -> Parsed[KernelEvent]:
        parsed = super().parse(blob)
        lines = [line for _, line in blob.lines()]
        apart = (*hosts_apart(lines), *unopened(lines))
        apart += tuple(found for each in _APART for found in each(lines))
        for each in apart[: self.most]:
            parsed.records.append(
                event(f"{TOLD_OF}{each.fault}", each.words, blob, each.number, lines[each.number - 1])
            )
        for each in (*ways_apart(lines), *unlisted(lines)):
            parsed.records.append(
                event(f"{REPORTED}{each.fault}", each.words, blob, each.number, lines[each.number - 1])
            )
        for number, said in _objects(blob.text):
            fault = setup_fault(said)
            if fault and not any(each.origin.line == number for each in parsed.records):
                parsed.records.append(event(f"{TOLD_OF}{fault}", said[:300], blob, number, lines[number - 1]))
        if _OF_PLUGIN.search(blob.text) is not None:
            for number, line in enumerate(lines, 1):
                if _NOT_FOUND.search(line):
                    said = f"ldd of the network plug-in: {' '.join(line.split())[:160]}"
                    parsed.records.append(event(f"{TOLD_OF}plugin", said, blob, number, line))
        over = any(each.kind == _MTU for each in parsed.records) or _ANSWERED.search(blob.text) is not None
        if over:
            parsed.records[:] = [each for each in parsed.records if not _PINGED.search(each.text)]
        return parsed


def _objects(text: str) -> Iterator[tuple[int, str]]:
    """The innermost objects of a JSON text that has them on several lines, as one line each, with the number of the
    line of the first member."""
    if _JSON.match(text) is None:
        return
    number, seen = 1, 0
    for found in islice(_OBJECT.finditer(text), MOST_OBJECTS):
        number, seen = number + text.count("\n", seen, found.start()), found.start()
        if "\n" in found[0]:
            yield number + 1, " ".join(found[0].split())
