"""Takes out of a bundle what identifies a site, and keeps its shape: a redacted bundle gives the same findings.

Replaced: host names, InfiniBand GUIDs and GIDs, IP and MAC addresses, serial numbers, UUIDs. Kept: versions, PCI bus
ids, times, CPU masks, counters, and everything else. See docs/collector.md.
"""

import ipaddress
import re
from typing import Any, Callable, Mapping, Match, Optional, Set

from topodiag_probes.bundle import Bundle
from topodiag_probes.names import VARIABLES, Names, is_common
from topodiag_probes.tokens import Tokens

KEY_VARIABLE = "TOPODIAG_REDACT_KEY"

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

_VERSION_BEFORE = re.compile(
    r"(?i)(?:version|firmware|\bfw|release|ofed|bios|inforom)"
    r"(?:\W{0,5}(?:\w{1,12}\W{1,4}){0,2}|[\w -]{0,12}[:=\t][^:=,;]{0,64})\Z"
)
_PREFIX_BEFORE = re.compile(r"(?i)prefix\W{0,5}\Z")
_GUID_BEFORE = re.compile(r"(?i)guid\W{0,24}\Z")
_BEFORE = 64

_SERIAL = re.compile(
    r'(?i)(serial(?:[_ -]?(?:number|num|no))?"?[ \t]*[:=>][ \t]*"?)'
    r"((?=[A-Z-]{0,40}[0-9])[A-Z0-9][A-Z0-9-]{3,40})(?![A-Z0-9])"
)
_ASSET_TAG = re.compile(r"(?m)^(= sys/class/dmi/id/chassis_asset_tag\t)(.+)$")
_CLOUD_TAGS = ("7783-7084-3265-9085-8269-3286-77", "Amazon EC2", "OracleCloud.com", "HUAWEICLOUD", "No Asset")
"""Asset tags by which clouds tell themselves apart; they are the same on every machine there."""
_ROUTE = re.compile(r"(?m)^(= proc/net/route\t\S+\s+)([0-9A-F]{8})(\s+)([0-9A-F]{8})(?=\s)")
_ROUTE6 = re.compile(r"(?m)^= proc/net/ipv6_route\t.*$")
_HEX32 = re.compile(r"(?<![0-9a-f])[0-9a-f]{32}(?![0-9a-f])")
_CONFIG = re.compile(r"(?m)^(x \S+/config\t)([0-9a-f]{520,8192})$")

# Where a host name must stand, whatever it looks like.
_HOST_PLACES = (
    re.compile(r"(?m)^(\[[ 0-9.]{3,20}\] )([A-Za-z0-9._-]{1,253})(?= kernel: )"),
    re.compile(r"(?m)^(= \S+/node_desc\t)([A-Za-z0-9._-]{1,253})(?=[ \n]|\Z)"),
    re.compile(r'((?<![A-Z0-9_])%s(?:=|": ?"))([A-Za-z0-9._-]{1,253})(?=["\n]|\Z)' % VARIABLES),
)

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

    def bundle(self, bundle: Bundle) -> Bundle:
        """A redacted copy."""
        self._names = Names()
        self._names.learn(bundle)
        texts = {path: data.decode("utf-8", "surrogateescape") for path, data in bundle.files.items()}
        self._guids = set()
        for text in texts.values():
            self._learn_guids(text)
        files = {
            self.text(path): self.text(text).encode("utf-8", "surrogateescape") for path, text in sorted(texts.items())
        }
        manifest = self._value(bundle.manifest)
        if bundle.manifest.get("host"):
            manifest["host"] = self.tokens.host(str(bundle.manifest["host"]))
        manifest["redacted"] = True
        return Bundle(manifest, files)

    def text(self, text: str) -> str:
        """One text with what is known of its bundle. Host names are known only after `bundle` has learnt them."""
        text = _ROUTE.sub(self._route, text)
        text = _ROUTE6.sub(lambda line: _HEX32.sub(self._hex32, line.group(0)), text)
        text = _CONFIG.sub(self._config, text)
        text = _SERIAL.sub(lambda match: match.group(1) + self.tokens.shape(match.group(2)), text)
        text = _ASSET_TAG.sub(self._asset_tag, text)
        for place in _HOST_PLACES:
            text = place.sub(self._host_place, text)
        text = self._names.replace(text, self.tokens.host)
        return _PATTERN.sub(self._replace, text)

    def _value(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self._value(each) for each in value]
        if isinstance(value, dict):
            return {key: self._value(each) for key, each in value.items()}
        return value

    def _learn_guids(self, text: str) -> None:
        """GUIDs that stand where only a GUID can, to know them again as bare hexadecimal elsewhere."""
        for match in _PATTERN.finditer(text):
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
        return match.group(1) + self.tokens.host(name)

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
            shown = _like(out.exploded if len(core) == 39 else out.compressed, core)
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
        return match.group(1) + fresh[0] + match.group(3) + fresh[1]

    def _hex32(self, match: Match[str]) -> str:
        return self.tokens.ipv6(bytes(bytearray.fromhex(match.group(0)))).hex()

    def _asset_tag(self, match: Match[str]) -> str:
        tag = match.group(2)
        known = tag.startswith(_CLOUD_TAGS) or not any(char.isdigit() for char in tag)
        return match.group(0) if known else match.group(1) + self.tokens.shape(tag)

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
        return match.group(1) + (bytes(data).hex() if data else match.group(2))


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
