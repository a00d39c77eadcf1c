"""Which names are of one machine: by their words, by what a source says, by addresses, by what only one machine has.

Joined in the order of trust. A tie that would make one machine of two that some source tells apart is not made, and
where several machines fit a name alike, that is said and none is taken: two nodes that are merged hide each other's
faults, and a fault told of the wrong node costs a healthy one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence, Set

from topodiag.model.clock_text import stamp
from topodiag.model.provenance import Origin
from topodiag.model.result import Case, Conflict, Host, Identity, Tie
from topodiag.verdict.names import NOBODY, NamedHost, in_name, voices
from topodiag.words.hosts import address_of, short_name
from topodiag.words.units import few, grouped

ONE_BOOT_S = 300.0
"""Seconds by which the boot that two captures of one boot show may differ: uptime counts by another clock than the
wall's, which NTP sets."""
MOST_ALIASES = 64
"""Other names kept of one machine."""
_TRUST = ("bundle", "output of tools", "cluster", "list of pods", "log", "nccl-tests", "hostfile", "kernel log", "RAS",
          "flight recorder")  # fmt: skip
"""Whose name a machine bears: what it calls itself, then what its site calls it."""


def identify(case: Case) -> Identity:
    """All hosts of a case with the names, addresses and pods that are theirs, and what sources say against each other.
    Never raises. The order of the case's parts changes nothing."""
    joined = _Machines(voices(case))
    joined.by_words()
    joined.by_saying(case.ties)
    joined.by_boot()
    joined.by_address()
    joined.by_serial()
    joined.by_shape()
    hosts = joined.hosts()
    return Identity(hosts, tuple(joined.conflicts))


class _Machines:
    """Voices, and the machines that they are joined to so far. A machine is a number, `of[voice]` that of a voice."""

    def __init__(self, named: Sequence[NamedHost]) -> None:
        self.voices = sorted(named, key=lambda voice: (_TRUST.index(voice.source), voice.name, voice.group))
        self.of = list(range(len(self.voices)))
        self.members: dict[int, list[int]] = {at: [at] for at in self.of}
        self.ties: list[dict[str, str]] = [{} for _ in self.voices]
        self.conflicts: list[Conflict] = []
        self.shared: set[str] = set()
        """Addresses that several machines have: they name none of them."""

    # --- the ways to know ---

    def by_words(self) -> None:
        """Equal names, and names that differ in their domain alone, as long as no source has both of them."""
        named = ((voice.name.lower(), at) for at, voice in enumerate(self.voices))
        by_name = grouped((name, at) for name, at in named if name not in NOBODY)
        for name, several in by_name.items():
            self._same_name(name, several)
        for short, names in grouped((short_name(name), name) for name in sorted(by_name)).items():
            if len(names) > 1:
                self._same_short(short, names, by_name)

    def by_saying(self, ties: Sequence[Tie]) -> None:
        """Pods and their nodes. A name that a source gives to two machines is nobody's."""
        owner = grouped((name.lower(), short_name(tie.names[0])) for tie in ties for name in tie.names[1:])
        at_name = self._by_name()
        texts: set[str] = set()
        for tie in ties:
            node = at_name.get(tie.names[0].lower()) or at_name.get(short_name(tie.names[0]))
            if node:
                machine = node[0]
            else:
                name = tie.names[0]
                machine = self._add(NamedHost(name, "list of pods", "pods", in_name(name), origin=tie.origin))
                at_name.setdefault(name.lower(), []).append(machine)
                at_name.setdefault(short_name(name), []).append(machine)
            for name in tie.names[1:]:
                owners = set(owner[name.lower()])
                if len(owners) > 1:
                    if name not in texts and not address_of(name):
                        texts.add(name)
                        nodes = few(sorted(owners))
                        self._conflict(name, f"{name} ran on several nodes: {nodes}", tie.origin)
                    continue
                self.ties[machine].setdefault(name, tie.how)
                for at in at_name.get(name.lower(), ()):
                    self._join(machine, at, tie.how, sure=True)

    def by_address(self) -> None:
        """An address that one source gives to one machine alone, and that stands in a name, in a capture or in a list:
        containers of different machines often have one address, and a job says of each what its container has."""
        known: set[str] = set()
        for voice in self.voices:
            known |= voice.addresses if voice.node >= 0 else in_name(voice.name)
        known |= {address for ties in self.ties for name in ties if (address := address_of(name))}
        for address, groups in sorted(self._holders().items()):
            roots = sorted({self.of[at] for several in groups.values() for at in several})
            if len(roots) > 1 and self._are_several(address, groups, roots):
                self.shared.add(address)
                self._nobodys(address, groups)
            elif address in known:
                for other in roots[1:]:
                    self._join(roots[0], other, f"both have the address {address}")

    def _holders(self) -> dict[str, dict[str, set[int]]]:
        """By address and source the voices that have it."""
        held = [(address, voice.group, at) for at, voice in enumerate(self.voices) for address in voice.addresses]
        held += [(address_of(name), "pods", at) for at, ties in enumerate(self.ties) for name in ties]
        holders: dict[str, dict[str, set[int]]] = defaultdict(lambda: defaultdict(set))
        for address, group, at in held:
            holders[address][group].add(at)
        holders.pop("", None)  # of a name that is no address
        return holders

    def _are_several(self, address: str, groups: Mapping[str, Set[int]], roots: Sequence[int]) -> bool:
        """Whether an address is of several machines: one source gives it to two, two captures have it (a bridge, an
        address that moves between machines), or two machines that name themselves differently."""
        if any(len({self.of[at] for at in several}) > 1 for several in groups.values()):
            return True
        captured = {self.of[at] for several in groups.values() for at in several
                    if self.voices[at].node >= 0 and address not in in_name(self.voices[at].name)}  # fmt: skip
        own = [names for root in roots if (names := self._own_names(root))]
        return len(captured) > 1 or (len(own) > 1 and not set.intersection(*own))

    def _own_names(self, root: int) -> set[str]:
        return {short_name(voice.name) for voice in map(self.voices.__getitem__, self.members[root])
                if voice.own and not address_of(voice.name)}  # fmt: skip

    def _nobodys(self, address: str, groups: Mapping[str, Set[int]]) -> None:
        """Said of an address by which a source calls a machine: that several bridges have one is how bridges are."""
        voices_ = [self.voices[at] for several in groups.values() for at in sorted(several)]
        called = [voice for voice in voices_ if address_of(voice.name) == address]
        others = sorted({self.voices[self.of[at]].name for several in groups.values() for at in several
                         if address_of(self.voices[at].name) != address})  # fmt: skip
        if called and len(others) > 1:
            self._conflict(address, f"{address} may be {few(others)}: each of them has that address", called[0].origin)

    def by_boot(self) -> None:
        """Captures of one boot: nothing else is as sure."""
        self._join_pairs(lambda voice: {voice.boot} - {""}, lambda _: "both were captured in one boot", sure=True)

    def by_serial(self) -> None:
        """GUIDs of adapters and UUIDs of GPUs that no third machine shows."""
        self._join_pairs(lambda voice: voice.serials, _same_part)

    def _join_pairs(
        self, ids: Callable[[NamedHost], Set[str]], how: Callable[[str], str], *, sure: bool = False
    ) -> None:
        holders = grouped((identity, at) for at, voice in enumerate(self.voices) for identity in ids(voice))
        for identity, several in sorted(holders.items()):
            roots = sorted({self.of[at] for at in several})
            if len(roots) == 2:
                self._join(roots[0], roots[1], how(identity), sure=sure)

    def by_shape(self) -> None:
        """What redaction and pasting keep: bus ids of GPUs and names of NICs. Only for a capture that bears no name of
        its own, and only where one machine of the jobs has no capture yet, and fits."""
        unnamed = self._unnamed()
        machines = self._without_capture()
        for at in unnamed:
            fits = [root for root, hosts in machines.items() if all(_fits(self.voices[at], host) for host in hosts)]
            near = [voice for root in fits for voice in machines[root]]
            rivals = [b for b in unnamed if b != at and any(_fits(self.voices[b], voice) for voice in near)]
            name = self.voices[at].name
            if len(fits) == 1 and not rivals:
                self._join(fits[0], at, "the only machine without a capture whose GPUs sit on the same bus ids")
            elif fits:
                hosts = few(sorted(self.voices[root].name for root in fits))
                text = f"the capture {name} names no host, and may be of {hosts}: they are built alike"
                self._conflict(name, text, self.voices[at].origin)

    def _unnamed(self) -> list[int]:
        """The captures that bear no name of their own, and are joined to nobody."""
        single = ((at, voice) for at, voice in enumerate(self.voices) if len(self.members[self.of[at]]) == 1)
        return [at for at, voice in single if voice.node >= 0 and voice.buses and not voice.real]

    def _without_capture(self) -> dict[int, list[NamedHost]]:
        """What speaks of the GPUs of each machine that has no capture."""
        speaking = ((at, voice) for at, voice in enumerate(self.voices) if voice.buses and voice.node < 0)
        return grouped((self.of[at], voice) for at, voice in speaking if not self._captures(at))

    # --- joining ---

    def _same_name(self, name: str, several: Sequence[int]) -> None:
        """Captures that bear one name and share no serial, although both show some, are of two machines."""
        captures = [at for at in several if self.voices[at].serials and self.voices[at].node >= 0]
        numbers = [at for at in captures[1:] if self.voices[at].serials.isdisjoint(self.voices[captures[0]].serials)]
        if numbers:
            both = [self.voices[at].origin for at in (captures[0], numbers[0])]
            text = f"two machines call themselves {name}: no GPU and no adapter of one capture is in the other"
            self._conflict(name, text, *both)
        first = next(at for at in several if at not in numbers)
        for at in several:
            if at not in numbers and at != first:
                self._join(first, at, "the same name", sure=True)

    def _same_short(self, short: str, names: Sequence[str], by_name: Mapping[str, Sequence[int]]) -> None:
        groups = grouped((self.voices[at].group, name) for name in names for at in by_name[name])
        rival = next((sorted({*both}) for _, both in sorted(groups.items()) if len({*both}) > 1), None)
        if rival is not None:
            if short in names:
                self._conflict(short, f"{short} may be {few(rival)}: a source has both")
            return
        first = by_name[names[0]][0]
        for name in names[1:]:
            for at in by_name[name]:
                self._join(first, at, "the same name without its domain", sure=True)

    def _join(self, one: int, other: int, how: str, *, sure: bool = False) -> None:
        a, b = self.of[one], self.of[other]
        if a == b or (not sure and not self._may_join(a, b)):
            return
        a, b = sorted((a, b))  # the more trusted voice stands first
        for at in self.members[b]:
            self.of[at] = a
            if self.voices[at].name != self.voices[a].name:
                self.ties[a].setdefault(self.voices[at].name, how)
        self.ties[a] |= {name: why for name, why in self.ties[b].items() if name not in self.ties[a]}
        self.members[a] += self.members.pop(b)

    def _may_join(self, a: int, b: int) -> bool:
        """Not where a source tells them apart: it names both, and they use the same GPUs or say nothing of them; or
        both are captures of machines that name themselves differently."""
        mine, theirs = [[self.voices[at] for at in self.members[root]] for root in (a, b)]
        own = [self._own_names(root) for root in (a, b)]
        if own[0] and own[1] and own[0].isdisjoint(own[1]):
            return False
        for one in mine:
            for other in theirs:
                if one.group == other.group and not (one.buses and other.buses and one.buses.isdisjoint(other.buses)):
                    return False
        return True

    def _conflict(self, subject: str, text: str, *lines: Origin | None) -> None:
        self.conflicts.append(Conflict(subject, text, tuple(line for line in lines if line is not None)))

    def _add(self, voice: NamedHost) -> int:
        self.voices.append(voice)
        at = len(self.of)
        self.of.append(at)
        self.members[at] = [at]
        self.ties.append({})
        return at

    def _captures(self, at: int) -> bool:
        return any(self.voices[other].node >= 0 for other in self.members[self.of[at]])

    def _by_name(self) -> dict[str, list[int]]:
        names = (dict.fromkeys((voice.name.lower(), short_name(voice.name))) for voice in self.voices)
        numbers = grouped((name, at) for at, own in enumerate(names) for name in own)
        # A short name that several machines have leads to none of them.
        return {name: several for name, several in numbers.items()
                if name in {self.voices[at].name.lower() for at in several}
                or len({self.of[at] for at in several}) == 1}  # fmt: skip

    # --- the answer ---

    def hosts(self) -> tuple[Host, ...]:
        taken = grouped((short_name(voice.name), self.of[at]) for at, voice in enumerate(self.voices))
        joined = []
        for root, members in self.members.items():
            several = [self.voices[at] for at in sorted(members)]
            name = _name_of(several)
            others = dict(self.ties[root])
            for voice in several:
                others |= {address: f"its address by {voice.source}" for address in sorted(voice.addresses)
                           if address not in others}  # fmt: skip
                others.setdefault(voice.name, "the same name")
            if len({*taken[short_name(name)]}) == 1 and short_name(name) != name.lower():
                others.setdefault(short_name(name), "its name without the domain")
            others = {alias: how for alias, how in others.items() if alias != name and alias not in self.shared}
            # A machine of Kubernetes has an address for each pod: names come first.
            aliases = tuple(sorted(sorted(others, key=lambda host: (bool(address_of(host)), host))[:MOST_ALIASES]))
            sources = tuple(dict.fromkeys(voice.source for voice in several))
            boots = sorted(voice.booted for voice in several if voice.booted is not None)
            boot = stamp(boots[-1]) if boots else ""
            if _of_two_boots(several):
                when = f", {stamp(boots[0])} and {boot}" if boots and boots[-1] - boots[0] > ONE_BOOT_S else ""
                self._conflict(name, f"its captures are of two boots{when}: counters began anew between them")
            joined.append(Host(name, aliases, sources, boot, ties={alias: others[alias] for alias in aliases}))
        return tuple(sorted(joined, key=lambda host: (host.name, host.sources)))


def _same_part(serial: str) -> str:
    what = "a GPU of the same UUID" if "-" in serial else f"an adapter with the GUID 0x{serial}"
    return f"both show {what}"


def _of_two_boots(several: Sequence[NamedHost]) -> bool:
    """By the kernel's ids where all captures have one: a clock that was set between them makes no boot. Otherwise by
    when they say that the machine booted."""
    times = [voice.booted for voice in several if voice.booted is not None]
    ids = {voice.boot for voice in several if voice.boot}
    if len(ids) > 1:
        return True
    known = all(voice.boot for voice in several if voice.booted is not None)
    return bool(times) and max(times) - min(times) > ONE_BOOT_S and not (ids and known)


def _name_of(several: Iterable[NamedHost]) -> str:
    """What the machine calls itself; a name that topodiag read off a file stands behind all others, and an address
    behind a name."""
    return min(several, key=lambda voice: (not voice.real, bool(address_of(voice.name)), _TRUST.index(voice.source),
                                          voice.name)).name  # fmt: skip


def _fits(capture: NamedHost, host: NamedHost) -> bool:
    """Whether a capture can be of a host: all GPUs in use are there, and no NIC that it does not have."""
    return bool(host.buses) and host.buses <= capture.buses and (not capture.nics or host.nics <= capture.nics)
