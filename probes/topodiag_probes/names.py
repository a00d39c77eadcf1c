"""Finds the host names that a bundle holds: its own, its job's (Slurm, Kubernetes, MPI), its IMEX domain's."""

import re
from typing import Callable, Dict, Iterator, List, Optional, Set

from topodiag_probes.bundle import Bundle

MAX_HOSTS = 16384
"""Of one list; in a longer one only the names that stand elsewhere as well are known."""
MAX_LISTS = 64

VARIABLES = (
    r"(?:[A-Z0-9_]*(?:HOST|HOSTS|HOSTNAME|HOSTLIST|NODELIST|NODENAME|NODE_NAME|POD_NAME|NODE_ALIASES)"
    r"|MASTER_ADDR)"
)
_ASSIGNED = re.compile(r'(?<![A-Z0-9_])%s(?:=|": ?")([^"\n]{1,65536})' % VARIABLES)
TOPOLOGY = re.compile(r'((?<![A-Z0-9_])SLURM_TOPOLOGY_ADDR(?:=|": ?"))([^"\s]{1,4096})')
_WORD = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,251}[A-Za-z0-9])?\Z")
_ITEM = re.compile(r"[^,\[\]\s]*(?:\[[^\]\s]*\][^,\[\]\s]*)*")
_PART = re.compile(r"\[([0-9,-]{1,4096})\]")
_RANGE = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9}))?\Z")

_COMMON = re.compile(
    r"[A-Za-z]+\Z|(?:gpu|nic|node|cpu|numa|eth|ib|mlx|bond|port|socket|link|pci|nvme|nvidia|dev|lo|[a-z])"
    r"(?:0|[1-9][0-9]*)[a-z]?\Z|[0-9.]+\Z|.{1,3}\Z"
)
"""Names that are words of the evidence as well (`gpu1`, `hopper`): replaced only where a host name must stand."""


def is_common(name: str) -> bool:
    return _COMMON.match(name) is not None


def expand(expression: str) -> Optional[List[str]]:
    """The hosts of one Slurm hostlist item: `gpu[001-003,7]` is four. None when it is none, or too long."""
    hosts = [""]
    place = 0
    for match in _PART.finditer(expression):
        numbers = list(_numbers(match.group(1)))
        if not numbers or len(hosts) * len(numbers) > MAX_HOSTS:
            return None
        head = expression[place : match.start()]
        hosts = [host + head + number for host in hosts for number in numbers]
        place = match.end()
    hosts = [host + expression[place:] for host in hosts]
    return hosts if all(_WORD.match(host) for host in hosts) else None


def _numbers(text: str) -> Iterator[str]:
    for part in text.split(","):
        match = _RANGE.match(part)
        if match is None:
            continue
        first, last = match.group(1), match.group(2) or match.group(1)
        if int(last) - int(first) > MAX_HOSTS:
            continue
        for number in range(int(first), int(last) + 1):
            yield str(number).zfill(len(first))


_TOKEN = re.compile(r"(?:(?<![0-9A-Za-z_-])|(?<=\\[nrt]))[0-9A-Za-z][0-9A-Za-z_.-]{0,252}")
_LABELS = re.compile(r"\.[0-9A-Za-z-]+\.[0-9A-Za-z.-]*[0-9A-Za-z]\Z")


class Names:
    """What was found: plain names, and list expressions with the hosts in them."""

    def __init__(self) -> None:
        self.hosts: Set[str] = set()
        self.lists: Dict[str, List[str]] = {}
        self._plain: Set[str] = set()  # the hosts that are no words of the evidence as well

    def learn(self, bundle: Bundle) -> None:
        """Find the names in a bundle. `settings`, `processes` and `imex-config` are where they are listed."""
        self.add(str(bundle.manifest.get("host", "")))
        for path, data in bundle.files.items():
            name = path.rsplit("/", 1)[-1]
            if name in ("settings.tree", "processes.json"):
                for match in _ASSIGNED.finditer(data.decode("utf-8", "replace")):
                    self.add_list(match.group(1))
                for match in TOPOLOGY.finditer(data.decode("utf-8", "replace")):
                    for label in match.group(2).split("."):
                        self.add(label)
            elif name == "imex-config.txt":
                for line in data.decode("utf-8", "replace").split("\n"):
                    if not line.strip().startswith("#"):
                        self.add(line.strip())

    def replace(self, text: str, stand_in: Callable[[str], str]) -> str:
        """The text with the names replaced, also those in front of `-ib0` or a domain (a domain goes with its host)."""
        for expression, hosts in self.lists.items():
            text = text.replace(expression, ",".join(stand_in(host) for host in hosts))
        if not self._plain:
            return text
        swapped = {}
        for token in dict.fromkeys(_TOKEN.findall(text)):  # a text says few words, many times
            fresh = self._swapped(token, stand_in)
            if fresh != token:
                swapped[token] = fresh
        return _TOKEN.sub(lambda match: swapped.get(match.group(0), match.group(0)), text) if swapped else text

    def _swapped(self, token: str, stand_in: Callable[[str], str]) -> str:
        name = token
        while name not in self._plain:
            cut = max(name.rfind("-"), name.rfind("."), name.rfind("_"))
            if cut < 1:
                return token
            name = name[:cut]
        rest = token[len(name) :]
        return stand_in(token) if _LABELS.match(rest) else stand_in(name) + rest

    def add(self, name: str) -> None:
        if _WORD.match(name) and not re.match(r"[0-9.]+\Z", name) and name != "localhost":
            for each in (name, name.split(".", 1)[0]):
                self.hosts.add(each)
                if not is_common(each):
                    self._plain.add(each)

    def add_list(self, text: str) -> None:
        """Names separated by commas or blanks, also in Slurm's brackets; the parts of a switch path end in a host."""
        for match in _ITEM.finditer(text):
            item = match.group(0)
            if "[" in item:
                hosts = expand(item)
                if hosts is not None and len(self.lists) < MAX_LISTS:
                    self.lists[item] = hosts
                    for host in hosts:
                        self.add(host)
            elif item:
                self.add(item)
