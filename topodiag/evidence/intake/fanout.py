"""One text with the output of several hosts, as parallel shells write it, cut into the texts of its hosts.

    gpu-01: CA 'mlx5_0'                              pdsh, clush
    ---------------- / gpu-[01-02] / ----------------  dshbak, clush -b: hosts that print the same
    gpu-01 | CHANGED | rc=0 >>                       ansible
    [1] 10:32:11 [SUCCESS] gpu-01                    pssh -i
    === gpu-01 ===                                   the loop of a shell
    gpu-01:                                          Salt, which indents what follows

A line keeps its number: what other hosts print is blank in the text of a host. Only where the blanks would be far more
than the text, lines are counted in the text of their host.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial

from topodiag.evidence.intake.same_node import BOARD, ids_of_text
from topodiag.evidence.signatures.wrappers import LABELS
from topodiag.words.node_sets import NodeSetError, expand
from topodiag.words.own_data import own_data, patterns

LEAST_HOSTS, MOST_HOSTS = 2, 1024
MOST_BLANK = 1 << 24
"""Lines of other hosts that all texts together hold as blank ones."""
LEAST_EACH = 2
"""Lines of a host on the average: one line of each is a table, whose readers compare the hosts by themselves."""
_LIKE = patterns("evidence/intake/fanout", "heads")
_DEVICES, _NO_HOSTS = (frozenset(own_data("evidence/intake/fanout")["words"][name]) for name in ("devices", "no_hosts"))


Chunks = dict[str, list[tuple[int, Sequence[str]]]]
"""Of each host the lines that are its, in chunks: the number of lines above, the lines."""


def parts_of(text: str) -> dict[str, str]:
    """The text of each host, in the order of the first lines; empty where the text is not of several hosts, or is of
    one machine that has several names in it (the serials of its devices say so)."""
    lines = text.split("\n")
    for sign, cut in _CUTS:
        parts = _texts(cut(lines)) if sign in text else {}
        if parts and not _is_one_machine(parts.values()):
            return parts
    return {}


def _texts(hosts: Chunks) -> dict[str, str]:
    """The text of each host that printed something, each line at its number if that is affordable."""
    blank = sum(chunks[-1][0] for chunks in hosts.values())
    joined = {}
    for host, chunks in hosts.items():
        own: list[str] = []
        for above, lines in chunks:
            if blank <= MOST_BLANK:
                own += [""] * (above - len(own))
            own += lines
        if any(map(str.strip, own)):
            joined[host] = "\n".join(own)
    return joined


def _is_host(name: str) -> bool:
    """Whether a label may be a host of several: such names have a number."""
    numbered = _LIKE["numbered"].match(name)
    word = numbered[1].lower() if numbered is not None else ""
    if word in _NO_HOSTS or (word in _DEVICES and _LIKE["counted"].match(name) is not None):
        return False
    return (
        name[0].isalpha()
        and "_" not in name
        and any(label.isdigit() for label in name)
        and _LIKE["file"].match(name) is None
    )


def _labelled(lines: Sequence[str]) -> Chunks:
    """By a label before each line. pdsh and clush say themselves whom they did not reach."""
    own: Chunks = {}
    for number, line in enumerate(lines):
        met = LABELS["host"].match(line)
        if met is None or not _is_host(met["host"]):
            if line.strip() and not line.startswith(("pdsh@", "clush: ", "srun: ")):
                return {}
            continue
        own.setdefault(met["host"], []).append((number, (line[met.end() :],)))
        if len(own) > MOST_HOSTS:
            return {}
    if len(own) < LEAST_HOSTS or sum(map(len, own.values())) < LEAST_EACH * len(own):
        return {}
    return own


def _heads(name: str, lines: Sequence[str]) -> list[tuple[int, tuple[str, ...]]]:
    """The lines that say in this way whose output follows, each with its host."""
    match = _LIKE[name].match
    return [(at, (met[1],)) for at, line in enumerate(lines) if (met := match(line)) and _is_host(met[1])]


def _under(name: str, lines: Sequence[str]) -> Chunks:
    return _between(lines, _heads(name, lines), 1)


def _under_rules(lines: Sequence[str]) -> Chunks:
    heads = [
        (at, hosts)
        for at in range(len(lines) - 2)
        if _LIKE["rule"].match(lines[at]) and _LIKE["rule"].match(lines[at + 2]) and (hosts := _hosts_of(lines[at + 1]))
    ]
    return _between(lines, heads, 3)


def _hosts_of(text: str) -> tuple[str, ...]:
    met = _LIKE["set"].match(text)
    if met is None:
        return ()
    try:
        hosts = expand(met[1], MOST_HOSTS)
    except NodeSetError:
        return ()
    return hosts if all(_is_host(host) for host in hosts) else ()


def _salt(lines: Sequence[str]) -> Chunks:
    heads = _heads("salt", lines)
    names = {at for at, _ in heads}
    if any(line.strip() and at not in names and not line.startswith("    ") for at, line in enumerate(lines)):
        return {}
    return _between([line.removeprefix("    ") for line in lines], heads, 1)


_CUTS: tuple[tuple[str, Callable[[Sequence[str]], Chunks]], ...] = (
    (":", _labelled), ("--------", _under_rules), (" | ", partial(_under, "ansible")),
    ("] ", partial(_under, "pssh")), ("", partial(_under, "loop")), (":", _salt),
)  # fmt: skip
"""The ways to cut a text in the order in which they are tried, each with what stands in all texts that it cuts."""


def _between(lines: Sequence[str], heads: Sequence[tuple[int, tuple[str, ...]]], size: int) -> Chunks:
    """The lines below each head of `size` lines; a host whose head stands twice has both."""
    if not LEAST_HOSTS <= len({host for _, hosts in heads for host in hosts}) <= MOST_HOSTS:
        return {}
    pairs: Chunks = {}
    ends = [at for at, _ in heads[1:]] + [len(lines)]
    for (at, hosts), end in zip(heads, ends, strict=True):
        chunk = (at + size, lines[at + size : end])
        for host in hosts:
            pairs.setdefault(host, []).append(chunk)
    return pairs


def _is_one_machine(texts: Iterable[str]) -> bool:
    """Whether two of the texts hold one serial: sections of one machine under names that look like hosts."""
    met: set[str] = set()
    for text in dict.fromkeys(texts):  # hosts that print the same share a text
        serials = {serial for label, serial in ids_of_text(text) if label != BOARD}
        if not met.isdisjoint(serials):
            return True
        met |= serials
    return False
