"""The evidence of incidents as bytes by path, and how tests change it: other names of hosts, or addresses."""

import gzip
import hashlib
import io
import pickle
import re
import shutil
import tarfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import topodiag
from benchmarks.incidents import FOLDER, Incident, incidents
from tests.files import laid
from topodiag.model.verdict import CauseStatus, State, Verdict

Evidence = dict[str, bytes]
Sign = tuple[State, tuple[tuple[object, ...], ...]]
INCIDENTS: Mapping[str, Incident] = {incident.name: incident for incident in incidents()}
BUNDLE = ".tar.gz"
_FOUND: dict[bytes, Verdict] = {}


@dataclass(frozen=True)
class Place:
    """A folder for the evidence of one diagnosis after the other."""

    path: Path

    def diagnose(self, evidence: Evidence, order: Iterable[str] = ()) -> Verdict:
        """The verdict on these texts, handed over as one folder, or one by one in this order; found once for all tests
        of a process, as nothing that they compare names the place."""
        question = hashlib.sha256(pickle.dumps((sorted(evidence.items()), tuple(order)))).digest()
        if question not in _FOUND:
            _FOUND[question] = self._diagnose(evidence, order)
        return _FOUND[question]

    def _diagnose(self, evidence: Evidence, order: Iterable[str]) -> Verdict:
        shutil.rmtree(self.path, ignore_errors=True)
        laid(self.path, evidence)
        asked = [str(self.path / name) for name in order] or [str(self.path)]
        verdict = topodiag.diagnose(asked).result.verdict
        assert verdict is not None
        return verdict


@cache
def _evidence(name: str) -> tuple[tuple[str, bytes], ...]:
    folder = FOLDER / name
    table = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.name != "truth.json":
            data, place = path.read_bytes(), path.relative_to(folder).as_posix()
            is_text = data[:2] == b"\x1f\x8b" and not place.endswith(BUNDLE)
            table[place.removesuffix(".gz") if is_text else place] = gzip.decompress(data) if is_text else data
    return tuple(table.items())


def evidence_of(name: str) -> Evidence:
    """All of an incident without its truth; texts are unpacked, bundles are as they stand."""
    return dict(_evidence(name))


def hosts_of(name: str) -> tuple[str, ...]:
    """The hosts of an incident as its evidence calls them, without a domain."""
    truth = INCIDENTS[name].truth
    named = {*truth["identity"], *(host for root in truth["root_causes"] for host in root["hosts"])}
    return tuple(sorted({host.partition(".")[0] for host in named} - {""}))


def renamer(names: Mapping[str, str]) -> Callable[[str], str]:
    """What replaces whole names in a text."""
    if not names:
        return str
    words = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
    pattern = re.compile(rf"(?<![A-Za-z0-9-])(?:{words})(?![A-Za-z0-9-])")
    return lambda text: pattern.sub(lambda match: names[match[0]], text)


def renamed(evidence: Evidence, change: Callable[[str], str]) -> Evidence:
    """The evidence with other names in its texts, in bundles, and in the names of files."""
    return {
        change(name): _bundle(data, change) if name.endswith(BUNDLE) else change(data.decode()).encode()
        for name, data in evidence.items()
    }


def _bundle(data: bytes, change: Callable[[str], str]) -> bytes:
    bytes_io = io.BytesIO()
    with (
        tarfile.open(fileobj=io.BytesIO(data)) as old,
        tarfile.open(fileobj=bytes_io, mode="w:gz", compresslevel=1) as new,
    ):
        for member in old.getmembers():
            held = old.extractfile(member)
            if held is None:
                new.addfile(member)
                continue
            text = change(held.read().decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
            member.name, member.size = change(member.name), len(text)
            new.addfile(member, io.BytesIO(text))
    return bytes_io.getvalue()


def addresses_of(hosts: Iterable[str]) -> dict[str, str]:
    """An address for each host."""
    return {host: f"10.77.3.{number}" for number, host in enumerate(sorted(hosts), start=1)}


def ip_addr(host: str, address: str) -> bytes:
    """What `ip addr` prints on a host, with bridges that are alike on all hosts."""
    return f"""\
root@{host}:~# ip addr
1: lo: <LOOPBACK,UP,LOWER_UP> mtu 65536 qdisc noqueue state UNKNOWN group default qlen 1000
    inet 127.0.0.1/8 scope host lo
2: eno0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 9000 qdisc mq state UP group default qlen 1000
    inet {address}/24 brd 10.77.3.255 scope global eno0
3: docker0: <NO-CARRIER,BROADCAST,MULTICAST,UP> mtu 1500 qdisc noqueue state DOWN group default
    inet 172.17.0.1/16 brd 172.17.255.255 scope global docker0
4: br-5f00aa00aa01: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc noqueue state UP group default
    inet 172.18.0.1/16 brd 172.18.255.255 scope global br-5f00aa00aa01
""".encode()


def sign(verdict: Verdict, name: Callable[[str], str] = str) -> Sign:
    """What a reader takes from a verdict: the state, and causes with their place, status and consequences."""
    causes = []
    for cause in verdict.causes:
        where = cause.finding.where
        nodes = tuple(sorted(name(node.partition("#")[0]) for node in where.nodes))
        below = tuple(sorted((consequence.finding.id, consequence.depth) for consequence in cause.consequences))
        causes.append((cause.finding.id, nodes, where.gpus, tuple(sorted(where.ranks)), cause.status, below))
    return verdict.state, tuple(causes)


def established(verdict: Verdict) -> set[str]:
    return {cause.finding.id for cause in verdict.causes if cause.status is CauseStatus.ESTABLISHED}
