"""The NCCL versions whose decisions are known: their range, how they are written, and the tables that go by version.

Versions are minor numbers throughout: 28 stands for NCCL 2.28 (its last patch). What a version does differently is
named in `nccl_features`. To add a version that decides as the one before it, add its line to nccl_versions.toml.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Generic, TypeVar

from topodiag.lazy import dataclass, regex
from topodiag.model.nccl_enums import PathType
from topodiag.model.nccl_features import Feature, has
from topodiag.words.own_data import own_data
from topodiag.words.units import runs

_T = TypeVar("_T")

LAST_PATCHES: Mapping[int, str] = {
    int(minor): patch for minor, patch in own_data("model/nccl_versions")["last_patches"].items()
}
"""Every version whose decisions are known, and the patch whose source was read.

Of 2.31 and 2.32 whole communicators of the released libraries on emulated hardware were compared: paths, graphs,
orders, channels, virtual NICs and tuning tables (benchmarks/nccl_agreement.py --comms). src/tuning is that of the
releases; the rest of src/init.cc was read on the public branch `dev` of June 2026 (2.31.0a7), one slip of which is not
taken over: NVLSTree finds no graph there, as it is not copied, and a release with it would lose most of its speed
between nodes.
Not modelled: the tuning of 2.32 for Rubin, and the rails that 2.32 gives ConnectX-9."""
DEFAULT = 28
DEFAULT_VERSION = f"2.{DEFAULT}"
"""What is asked where nobody names a version."""

KNOWN = tuple(LAST_PATCHES)
OLDEST, NEWEST = KNOWN[0], KNOWN[-1]
NEWEST_RUN = 30
"""The newest version whose runs were compared: what a run is taken for that does not say its version."""
VARIABLES_SINCE = 4
"""The first version whose environment variables are known by name."""

_VERSION = regex(r"v?2\.([0-9]{1,3})(?:\.[0-9]{1,4})?(?:[-+].*)?")
_LOGGED = regex(r"2\.([0-9]{1,5})(?:[.+-].*)?")
_NUMBER = regex(r"[0-9]{1,4}(?:\.[0-9]{1,4}){1,3}")
_SHOWN = 40


class UnknownVersionError(ValueError):
    """A text that is no version of NCCL, or a version older than all that are known."""


def spell_version(minor: int) -> str:
    """`2.28` for 28."""
    return f"2.{minor}"


def spell_range(first: int = OLDEST, last: int = NEWEST) -> str:
    """`2.18 to 2.30`; by default the versions whose decisions are known."""
    return spell_version(first) if first == last else f"{spell_version(first)} to {spell_version(last)}"


def spell_versions(minors: Iterable[int]) -> str:
    """`2.18 to 2.30`, `2.28`, `2.18 to 2.20 and 2.29`."""
    return " and ".join(spell_range(first, last) for first, last in runs(minors))


def read_minor(text: str) -> int | None:
    """28 for `2.28`, `2.28.9`, `v2.28.9-1`, known or not; None for what is no version of NCCL 2."""
    match = _VERSION.fullmatch(text.strip())
    return int(match[1]) if match else None


def minor_of(text: str) -> int:
    """The known version by whose rules NCCL `text` is judged: its own, or the newest for a newer one (`assumption`
    says so). Raises UnknownVersionError for an older one, and for what is no version."""
    minor = read_minor(text)
    if minor is None or minor < OLDEST:
        raise UnknownVersionError(f"{text[:_SHOWN]!r} is not an NCCL version from {spell_range()}")
    return min(minor, NEWEST)


def nearest_minor(text: str) -> int:
    """`minor_of`, but the oldest known version for an older one. Raises UnknownVersionError for what is no version."""
    minor = read_minor(text)
    return minor_of(text) if minor is None else max(OLDEST, min(minor, NEWEST))


def minor_or_default(text: str) -> int:
    """`nearest_minor`, and DEFAULT for what is no version of NCCL 2."""
    return DEFAULT if read_minor(text) is None else nearest_minor(text)


def is_newer(text: str) -> bool:
    """Whether a version is newer than all that are known."""
    minor = read_minor(text)
    return minor is not None and minor > NEWEST


def assumption(text: str) -> str:
    """What is assumed about a version whose own rules are not known, as a sentence; "" for a known one."""
    minor = read_minor(text)
    if minor is None or OLDEST <= minor <= NEWEST:
        return ""
    order, most, last = ("newer", "newest", NEWEST) if minor > NEWEST else ("older", "oldest", OLDEST)
    known = spell_version(last)
    words = f"NCCL {spell_version(minor)} is {order} than {known}, the {most} version known here"
    return f"{words}: it is taken to decide as {known} does"


def number_of(text: str) -> str:
    """The version as a number alone: `2.21.5` of `2.21.5+cuda12.4` and of `2.21.5-HEAD:d7b4b47`; a text without one as
    it is."""
    match = _NUMBER.match(text)
    return match[0] if match is not None else text


def text_has(text: str, feature: Feature) -> bool:
    """Whether a version as a log writes it, known or not, has a feature; one that cannot be read has none."""
    match = _LOGGED.fullmatch(text)
    return match is not None and has(int(match[1]), feature)


class ByVersion(Generic[_T]):
    """A table that changed with the versions: each entry holds from its version on. A data file has them as texts.

    Raises ValueError, when it is made, for a table that says nothing of the oldest known version, or speaks of one that
    LAST_PATCHES lacks: a table must not answer for a version by accident.
    """

    def __init__(self, table: Mapping[int, _T] | Mapping[str, _T]) -> None:
        entries = {int(since): value for since, value in table.items()}
        if min(entries) != OLDEST or not set(entries) <= set(KNOWN):
            raise ValueError(f"a table for {sorted(entries)} must begin with {OLDEST} and speak of known versions only")
        changes = sorted(entries)
        self._entries = {minor: entries[max(since for since in changes if since <= minor)] for minor in KNOWN}

    def __getitem__(self, minor: int) -> _T:
        return self._entries[minor]


MAX_CHANNELS = ByVersion({18: 32, 25: 64})
"""MAXCHANNELS (src/include/device.h)."""
MAX_VERTICES = ByVersion({18: 256, 27: 576, 29: 640})
"""NCCL_TOPO_MAX_NODES (src/graph/topo.h): vertices of a kind."""
MAX_LINKS = ByVersion({18: 32, 21: 128, 25: 576})
"""NCCL_TOPO_MAX_LINKS (src/graph/topo.h): links of a vertex."""
MAX_ELEMENTS = ByVersion({18: 1024, 21: 256})
"""Elements of a topology file: MAX_NODES, then NCCL_TOPO_XML_MAX_NODES (src/graph/xml.h)."""
MAX_CHILDREN = ByVersion({18: 32, 21: 128, 29: 640})
"""Children of an element of a topology file: MAX_SUBS (src/graph/xml.h)."""
DIRECT_RANKS, NVLS_RANKS = 8, 32
"""GPUs of a node that CollNet direct and NVLS join, and most heads of their graphs: NCCL_MAX_DIRECT_ARITY + 1 and
NCCL_MAX_NVLS_ARITY (src/include/device.h)."""

_PATHS_SINCE = {PathType.C2C: Feature.C2C_PATHS, PathType.P2C: Feature.P2C}
"""Path types that came later; the others are as old as the oldest version."""


@dataclass(frozen=True, slots=True)
class PathTypes:
    """The numbers of a version's path types: the search steps through them. A type that the version lacks has the
    number of what it used instead: C2C is NVL before 2.26; P2C does not arise before 2.27 and has PHB's number there.
    """

    names: tuple[str, ...]
    loc: int
    nvl: int
    nvb: int
    c2c: int
    pix: int
    pxb: int
    p2c: int
    pxn: int
    phb: int
    sys: int
    net: int
    dis: int

    @property
    def numbers(self) -> Mapping[str, int]:
        return {name: number for number, name in enumerate(self.names)}


@cache
def path_types(minor: int) -> PathTypes:
    names = tuple(t.name for t in PathType if t not in _PATHS_SINCE or has(minor, _PATHS_SINCE[t]))
    of = {name: number for number, name in enumerate(names)}
    of.setdefault("C2C", of["NVL"])
    of.setdefault("P2C", of["PHB"])
    return PathTypes(names, **{name.lower(): number for name, number in of.items()})
