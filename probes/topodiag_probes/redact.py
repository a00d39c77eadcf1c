"""Takes out of a bundle what is not known to identify nobody, and keeps its shape: it gives the same findings.

Replaced, each in its form: host names, InfiniBand GUIDs and GIDs, IP and MAC addresses, serial numbers, UUIDs. Then
every word that harmless.py does not know. Kept: versions, PCI bus ids, times, CPU masks, counters, words of drivers and
tools. See docs/collector.md.
"""

import binascii
import ipaddress
import re
from typing import Any, Callable, Dict, Iterable, Iterator, Mapping, Match, Optional, Set

from topodiag_probes.bundle import Bundle
from topodiag_probes.harmless import RUN, is_harmless
from topodiag_probes.names import TOPOLOGY, VARIABLES, Names, is_common
from topodiag_probes.reduced import CLOUD_TAGS
from topodiag_probes.tokens import Tokens

KEY_VARIABLE = "TOPODIAG_REDACT_KEY"

_OPEN, _CLOSE = "\ue000", "\ue001"
"""Round what is settled: a later step does not look at it again."""
_SETTLED = str.maketrans({_OPEN: "?", _CLOSE: "?"})
_KEPT = (
    r"(?P<settled>\ue000[^\ue001]*\ue001)"
    r"|(?P<escape>\\[nrtbf]|(?:GPU|MIG)-(?=[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-)"
    r"|(?<![0-9A-Za-z])[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}(?:[.,][0-9]{1,9})?"
    r"(?:Z|[+-][0-9]{2}:?[0-9]{2})?(?![0-9A-Za-z]))"
    r"|(?P<key>\"[a-z][a-z0-9_]{0,60}\"(?=\s?:))"
    r"|(?P<counter>(?<=/)(?:statistics|counters|hw_counters)/[A-Za-z0-9_]{1,80}(?=\t)"
    r"|^ {1,8}[A-Za-z][A-Za-z0-9_.\[\]]{0,80}: (?=[0-9]{1,20}$))"
)
_TAGS = r"|(?P<tag></?[a-z][a-z_0-9]{0,60}(?=[\s/>])|(?<=\s)[a-z][a-z_0-9]{0,60}(?==\"))"
_X = "[0-9A-Fa-f]"
# The letter of an escaped line end or tab (JSON, tree files) does not belong to what follows it.
_AFTER = r"(?:(?<![%s])|(?<=\\[nrt]))"
_SHAPES = "|".join(
    (
        r"(?P<uuid>(?<!{x}){x}{{8}}-{x}{{4}}-{x}{{4}}-{x}{{4}}-{x}{{12}}(?!{x}))",
        r"(?P<octets>{word_colon_dash}(?:{x}{{2}}[:-]){{5,19}}{x}{{2}}(?![0-9A-Za-z:-]))",
        r"(?P<quads>{word_colon}{x}{{4}}(?::{x}{{4}}){{3}}(?![0-9A-Za-z:]))",
        r"(?P<ipv6>{word_colon_dash}(?={x}{{0,4}}:)[0-9A-Fa-f:]{{2,39}}(?:\.[0-9]{{1,3}}){{0,3}}(?![0-9A-Za-z_]))",
        r"(?P<hex>{word}(?:0x)?{x}{{16}}(?![0-9A-Za-z]))",
        r"(?P<ipv4>{word_dash}(?:[0-9]{{1,3}}\.){{3}}[0-9]{{1,3}}"
        r"(?![0-9A-Za-z_]|\.[0-9]|-(?![0-9]+\.[0-9]+\.)))",
        r"(?P<cloud>{word_dash}ip(?:-[0-9]{{1,3}}){{4}}(?![0-9A-Za-z_-]))",
    )
).format(
    x=_X,
    word=_AFTER % "0-9A-Za-z",
    word_dash=_AFTER % "0-9A-Za-z_.-",
    word_colon=_AFTER % "0-9A-Za-z:.",
    word_colon_dash=_AFTER % "0-9A-Za-z:._-",
)
_PATTERN = re.compile(_SHAPES)
_LONG_HEX = re.compile("{x}{{16}}|{x}{{4}}(?::{x}{{4}}){{3}}".format(x=_X))
"""What every line with a GUID holds, found sooner than all shapes are looked for."""
_WORDS = "|(?P<run>%s)" % RUN
_TEXT = re.compile(_KEPT + "|" + _SHAPES + _WORDS, re.MULTILINE)
_XML = re.compile(_KEPT + _TAGS + "|" + _SHAPES + _WORDS, re.MULTILINE)

_VERSION_BEFORE = re.compile(
    r"(?i)(?:(?<!/)|(?=version\t))(?:version|firmware|\bfw|release|ofed|bios|inforom)[a-z_-]{0,12}"
    r"(?:[\"']?[ ]{0,12}[:=>|][ \t]{0,64}(?:[0-9.]{7,15}/pkg )?|[ \t]{1,64})(?:is )?[\"'(]?v?\Z"
)
"""What names the number right behind it a version. Behind a path (`cat /proc/driver/nvidia/version`) is none, but
in lines of tree files; `firmware-version: 223.0.161.0/pkg 22.31.13.70` has two."""
_PREFIX_BEFORE = re.compile(r"(?i)prefix\W{0,5}\Z")
_GUID_BEFORE = re.compile(r"(?i)guid\W{0,24}\Z")
_BEFORE = 64

_SERIAL = re.compile(
    r'(?i)(serial(?:[_ -]?(?:number|num|no\b))?"?(?:[ \t]*[:=>#][ \t]*"?|[ \t]{1,4}))'
    r"((?=[A-Z-]{0,40}[0-9])(?![0-9A-F]{2}-[0-9A-F]{2}-)[A-Z0-9][A-Z0-9-]{3,40})(?![A-Z0-9])"
)
_ASSET_TAG = re.compile(r"(?m)^(= sys/class/dmi/id/chassis_asset_tag\t)(.+)$")
_HOME = re.compile(r"(/(?:home|users|Users|homes)/)([^/\s\"':,;<>]{1,128})")
_OWNED = re.compile(
    r"(?i)(?<![a-z])((?:user(?:name)?|login|account|job_?name|cluster(?:_?name)?|namespace|project|owner|tenant)"
    r"[\"']?(?:[ \t]{0,2}[=:][ \t]{0,2}|\t)[\"']?)([^\s\"'<>,;()]{1,253})"
)
"""Whom and whose: a name, even where it is a word like any other."""
_NOBODY = re.compile(r"(?i)(?:[0-9x.]+|none|null|n/a|yes|no|unknown|%s.*)\Z" % _OPEN)
_ROUTE = re.compile(r"(?m)^(= proc/net/route\t\S+\s+)([0-9A-F]{8})(\s+)([0-9A-F]{8})(?=\s)")
_ROUTE6 = re.compile(r"(?m)^= proc/net/(?:ipv6_route|if_inet6)\t.*$")
_HEX32 = re.compile(r"(?<![0-9a-f])[0-9a-f]{32}(?![0-9a-f])")
_CONFIG = re.compile(r"(?m)^(x \S+/config\t)([0-9a-f]{2,8192})$")

# Where a host name must stand, whatever it looks like.
_HOST_PLACES = (
    re.compile(r"(?m)^(\[[ 0-9.]{3,20}\] )([A-Za-z0-9._-]{1,253})(?= kernel: )"),
    re.compile(r"(?m)^(= \S+/node_desc\t)([A-Za-z0-9._-]{1,253})(?=[ \n]|\Z)"),
    re.compile(r'((?<![A-Z0-9_])%s(?:=|": ?"))([A-Za-z0-9._-]{1,253})(?=["\n]|\Z)' % VARIABLES),
)

_MAC = re.compile(r"(?<![0-9A-Za-z:-])((?:[0-9a-fA-F]{2}:){5}[0-9a-fA-F]{2})(?![0-9A-Za-z:-])")
_BARE_MAC = re.compile(r"[0-9a-fA-F]{12}\Z")
_INTERFACE = re.compile(r"(\Aethtool-(?:[iS]-)?|/ethtool-(?:[iS]-)?)(?!IF\Z)(.+?)(?=\.txt\Z|\Z)")
NOBODY = 65534
"""Stands for every user but root."""
_EXT_SERIAL = 0x0003
"""PCI Express Extended Capability: Device Serial Number."""


def read_key(place: Optional[str], environ: Mapping[str, str]) -> Optional[bytes]:
    """The key from a file, from `env:NAME`, from KEY_VARIABLE, or None for a random one. Raises OSError, ValueError."""
    if place is None:
        key = environ.get(KEY_VARIABLE, "").encode("utf-8", "surrogateescape")
        return key or None
    if place.startswith("env:"):
        key = environ.get(place[4:], "").encode("utf-8", "surrogateescape")
    else:
        with open(place, "rb") as handle:
            key = handle.read(4096).strip()
    if not key:
        raise ValueError("%s holds no key" % place)
    return key


class Redactor:
    """Redacts bundles with one key, so that the same value has the same stand-in in all of them."""

    def __init__(self, key: Optional[bytes] = None) -> None:
        self.tokens = Tokens(key)
        self._names = Names()
        self._guids: Set[int] = set()
        self._bare: Dict[str, str] = {}

    def bundle(self, bundle: Bundle) -> Bundle:
        """A redacted copy."""
        self._names = Names()
        self._names.learn(bundle)
        texts = {path: data.decode("utf-8", "surrogateescape") for path, data in bundle.files.items()}
        self._guids = set()
        self._bare = {}
        for text in texts.values():
            self._learn_guids(text)
            self._learn_serials(text)
        files = {
            self._place(path): self.text(text).encode("utf-8", "surrogateescape")
            for path, text in sorted(texts.items())
        }
        manifest = dict(bundle.manifest)
        if manifest.get("host"):
            manifest["host"] = self.tokens.host(str(manifest["host"]))
        manifest["boot_id"] = self.text(str(manifest.get("boot_id") or ""))
        manifest["uid"] = 0 if manifest.get("uid") == 0 else NOBODY
        manifest["items"] = [self._item(item) for item in manifest.get("items", ())]
        manifest["redacted"] = True
        return Bundle(manifest, files)

    def _item(self, item: Mapping[str, Any]) -> Dict[str, Any]:
        """A line of the manifest. What the collector itself wrote there holds no names but those of interfaces."""
        entry = dict(item)
        for key in ("id", "file"):
            entry[key] = self._place(str(entry.get(key) or ""))
        if entry.get("argv") and str(item["id"]).startswith("ethtool-"):
            entry["argv"] = [*entry["argv"][:-1], self.text(str(entry["argv"][-1]))]
        if entry.get("paths"):
            entry["paths"] = [self.text(str(path)) for path in entry["paths"]]
        for key in ("why", "stderr"):
            entry[key] = self.text(str(entry.get(key) or ""))
        return entry

    def _place(self, text: str) -> str:
        """An item's id or file, which may name an interface."""
        return _INTERFACE.sub(lambda match: match.group(1) + self.text(match.group(2)), text)

    def text(self, text: str) -> str:
        """One text with what is known of its bundle. Host names are known only after `bundle` has learnt them."""
        text = text.translate(_SETTLED)
        text = _ROUTE.sub(self._route, text)
        text = _ROUTE6.sub(lambda line: _HEX32.sub(self._hex32, line.group(0)), text)
        text = _CONFIG.sub(self._config, text)
        text = _SERIAL.sub(lambda match: match.group(1) + _settled(self.tokens.shape(match.group(2))), text)
        text = _ASSET_TAG.sub(self._asset_tag, text)
        text = TOPOLOGY.sub(self._topology, text)
        for place in _HOST_PLACES:
            text = place.sub(self._host_place, text)
        text = self._names.replace(text, lambda name: _settled(self.tokens.host(name)))
        text = _HOME.sub(self._owned, text)
        text = _OWNED.sub(self._owned, text)
        pattern = _XML if text.lstrip()[:5] == "<?xml" or text.lstrip()[:7] == "<system" else _TEXT
        return pattern.sub(self._replace, text)

    def learn(self, hosts: Iterable[str], lists: Iterable[str], texts: Iterable[str]) -> None:
        """What a report holds that came from no bundle: names of hosts, node sets, and texts with GUIDs and serials."""
        for name in hosts:
            self._names.add(name)
        for expression in lists:
            self._names.add_list(expression)
        for text in texts:
            self._learn_guids(text)
            self._learn_serials(text)

    def _learn_serials(self, text: str) -> None:
        """Serial numbers and MAC addresses, to know them again where they stand bare."""
        for match in _SERIAL.finditer(text):
            self._bare[match.group(2)] = self.tokens.shape(match.group(2))
        for match in _MAC.finditer(text):
            digits = match.group(1).replace(":", "")
            fresh = self.tokens.mac(bytes(bytearray.fromhex(digits))).hex()
            self._bare[digits] = fresh
            self._bare[digits.upper()] = fresh.upper()

    def _settled(self, match: Match[str]) -> str:
        return match.group(0)[1:-1]

    def _escape(self, match: Match[str]) -> str:
        return match.group(0)

    _key = _counter = _tag = _escape

    def _run(self, match: Match[str]) -> str:
        """A word: itself where it is harmless, else a token by which it is known again."""
        run = match.group(0)
        if run in self._bare:
            return self._bare[run]
        if is_harmless(run):
            return run
        if _BARE_MAC.match(run):
            return _like(self.tokens.mac(bytes(bytearray.fromhex(run))).hex(), run)
        return self.tokens.word(run)

    def _owned(self, match: Match[str]) -> str:
        if _NOBODY.match(match.group(2)):
            return match.group(0)
        return _settled(match.group(1) + self.tokens.word(match.group(2)))

    def _topology(self, match: Match[str]) -> str:
        """Switch by switch down to the host: each keeps its own token, so that nodes of one switch stay together."""
        return match.group(1) + ".".join(_settled(self.tokens.host(label)) for label in match.group(2).split("."))

    def _learn_guids(self, text: str) -> None:
        """GUIDs that stand where only a GUID can, to know them again as bare hexadecimal elsewhere."""
        for match in _matches_in_lines(text):
            kind, found = match.lastgroup, match.group(0)
            if kind == "quads" and not _is_prefix(match):
                self._guids.add(int(found.replace(":", ""), 16))
            elif kind == "hex" and _GUID_BEFORE.search(_before(match)):
                self._guids.add(int(found, 16))
            elif kind == "ipv6" and found.count(":") == 7 and len(found) == 39:
                self._guids.add(int(found[20:].replace(":", ""), 16))

    def _replace(self, match: Match[str]) -> str:
        kind = match.lastgroup or ""
        replace: Callable[[Match[str]], str] = getattr(self, "_" + kind)
        return replace(match)

    def _host_place(self, match: Match[str]) -> str:
        name = match.group(2)
        if name not in self._names.hosts or not is_common(name):
            return match.group(0)  # the general pass replaces it
        return match.group(1) + _settled(self.tokens.host(name))

    def _cloud(self, match: Match[str]) -> str:
        return self.tokens.host(match.group(0))

    def _uuid(self, match: Match[str]) -> str:
        return _like(self.tokens.uuid(match.group(0)), match.group(0))

    def _octets(self, match: Match[str]) -> str:
        """A MAC address, a GUID, or the hardware address of IP over InfiniBand, which ends in a GUID."""
        text = match.group(0)
        octets = bytes(bytearray.fromhex(text.replace(":", "").replace("-", "")))
        if len(octets) == 6:
            octets = self.tokens.mac(octets)
        elif len(octets) in (8, 20):
            octets = octets[:-8] + self.tokens.guid(int.from_bytes(octets[-8:], "big")).to_bytes(8, "big")
        else:
            return text
        return _like(text[2].join("%02x" % octet for octet in bytearray(octets)), text)

    def _quads(self, match: Match[str]) -> str:
        octets = bytes(bytearray.fromhex(match.group(0).replace(":", "")))
        if _is_prefix(match):
            digits = self.tokens.prefix(octets).hex()
        else:
            digits = "%016x" % self.tokens.guid(int.from_bytes(octets, "big"))
        return _like(":".join(digits[place : place + 4] for place in (0, 4, 8, 12)), match.group(0))

    def _hex(self, match: Match[str]) -> str:
        """Sixteen hexadecimal digits are masks and sizes as often as GUIDs: only those known or named as such."""
        text = match.group(0)
        value = int(text, 16)
        if value not in self._guids and not _GUID_BEFORE.search(_before(match)):
            return text
        digits = "%016x" % self.tokens.guid(value)
        return text[:-16] + _like(digits, text[-16:])

    def _ipv6(self, match: Match[str]) -> str:
        text = match.group(0)
        core = text[:-1] if text.endswith(":") and not text.endswith("::") else text
        try:
            address = ipaddress.IPv6Address(core)
        except ValueError:
            return text
        fresh = self.tokens.ipv6(address.packed)
        if fresh == address.packed:
            return text
        out = ipaddress.IPv6Address(fresh)
        if "." in core:
            shown = core[: core.rindex(":") + 1] + ".".join(str(octet) for octet in bytearray(fresh[12:]))
        else:
            # As IPv6Address spells it up to Python 3.12: 3.13 ends the address of an IPv4 one in decimal.
            groups = [binascii.hexlify(fresh[at : at + 2]).decode() for at in range(0, 16, 2)]
            short = "::ffff:%x:%x" % (int(groups[6], 16), int(groups[7], 16)) if out.ipv4_mapped else out.compressed
            shown = _like(":".join(groups) if len(core) == 39 else short, core)
        return shown + text[len(core) :]

    def _ipv4(self, match: Match[str]) -> str:
        text = match.group(0)
        parts = text.split(".")
        if any(int(part) > 255 or (part[0] == "0" and part != "0") for part in parts):
            return text
        if _VERSION_BEFORE.search(_before(match)):
            return text
        return ".".join(str(octet) for octet in bytearray(self.tokens.ipv4(bytes(int(part) for part in parts))))

    def _route(self, match: Match[str]) -> str:
        """The kernel prints addresses as hexadecimal in the machine's order, little-endian wherever GPUs are."""
        fresh = [self.tokens.ipv4(bytes(bytearray.fromhex(match.group(n)))[::-1])[::-1].hex().upper() for n in (2, 4)]
        return match.group(1) + _settled(fresh[0]) + match.group(3) + _settled(fresh[1])

    def _hex32(self, match: Match[str]) -> str:
        return _settled(self.tokens.ipv6(bytes(bytearray.fromhex(match.group(0)))).hex())

    def _asset_tag(self, match: Match[str]) -> str:
        tag = match.group(2)
        known = tag.startswith(CLOUD_TAGS) or not any(char.isdigit() for char in tag)
        return match.group(1) + _settled(tag if known else self.tokens.shape(tag))

    def _config(self, match: Match[str]) -> str:
        """The device serial number in a configuration space; network cards make it of their MAC address."""
        data = bytearray.fromhex(match.group(2)) if len(match.group(2)) % 2 == 0 else bytearray()
        place = 0x100
        for _ in range(64):
            if not 0x100 <= place <= len(data) - 12:
                break
            header = int.from_bytes(data[place : place + 4], "little")
            if header & 0xFFFF == _EXT_SERIAL:
                serial = int.from_bytes(data[place + 4 : place + 12], "little")
                data[place + 4 : place + 12] = self.tokens.guid(serial).to_bytes(8, "little")
            place = header >> 20
        return match.group(1) + _settled(bytes(data).hex() if data else match.group(2))


def _matches_in_lines(text: str) -> Iterator[Match[str]]:
    """The shapes in lines that may hold a GUID; none goes over the end of a line."""
    seen = _LONG_HEX.search(text)
    while seen is not None:
        start, end = text.rfind("\n", 0, seen.start()) + 1, text.find("\n", seen.end())
        end = len(text) if end < 0 else end
        for match in _PATTERN.finditer(text, start, end):
            yield match
        seen = _LONG_HEX.search(text, end)


def _settled(text: str) -> str:
    return _OPEN + text + _CLOSE


def _before(match: Match[str]) -> str:
    """The text before a match on its line, as far as it can matter."""
    start = match.start()
    text = match.string[max(0, start - _BEFORE) : start]
    return text[text.rfind("\n") + 1 :]


def _is_prefix(match: Match[str]) -> bool:
    """Whether four groups are a subnet's prefix and no GUID."""
    return match.group(0).lower().startswith("fe80:0") or _PREFIX_BEFORE.search(_before(match)) is not None


def _like(text: str, model: str) -> str:
    """In capitals where the original is."""
    return text.upper() if model != model.lower() else text
