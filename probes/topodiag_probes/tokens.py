"""Stand-ins for values that identify: keyed by HMAC-SHA256, the same for the same value, and of the same shape.

Values that mean something by themselves stay: all zeros, all ones, loopback, netmasks, link-local and private prefixes.
"""

import hashlib
import hmac
import os
from typing import Dict, List, Optional

ALL_ONES_64 = (1 << 64) - 1
SMALL = 1 << 16
"""Interface identifiers below this (`::1`, `::a`) were chosen by hand and identify nobody."""


class Tokens:
    """The mapping for one key. The same key gives the same stand-ins on every host of a fleet."""

    def __init__(self, key: Optional[bytes] = None) -> None:
        self._key = key or os.urandom(32)
        self._orders: Dict[bytes, List[int]] = {}

    def _digest(self, domain: str, data: bytes) -> bytes:
        return hmac.new(self._key, domain.encode("ascii") + b"\0" + data, hashlib.sha256).digest()

    def host(self, name: str) -> str:
        """`gpu-001.cluster.example` becomes `host-5fd2a9c07b.d1b2c3d4e5.example`."""
        short, _dot, domain = name.lower().partition(".")
        token = "host-" + self._digest("host", short.encode("utf-8", "surrogateescape")).hex()[:10]
        if domain:
            token += ".d%s.example" % self._digest("domain", domain.encode("utf-8", "surrogateescape")).hex()[:9]
        return token

    def word(self, text: str) -> str:
        """Any word that is not known to be harmless: like a host where it looks like one, so that a host has one token
        also where nothing says that it is one."""
        last = text.rpartition(".")[2]
        if "." in text and not last.isalpha():
            return "host-" + self._digest("host", text.lower().encode("utf-8", "surrogateescape")).hex()[:10]
        if any(char.isdigit() or char in ".-" for char in text):
            return self.host(text)
        return "name-" + self._digest("host", text.lower().encode("utf-8", "surrogateescape")).hex()[:10]

    def mac(self, octets: bytes) -> bytes:
        """A unicast address for a unicast one, local for local; group addresses stay."""
        if octets[0] & 1 or not any(octets):
            return octets
        fresh = bytearray(self._digest("mac", octets)[:6])
        fresh[0] = (fresh[0] & 0xFC) | (octets[0] & 0x03)
        return bytes(fresh)

    def guid(self, value: int) -> int:
        """64 bits: an InfiniBand GUID, a device serial number, the lower half of a GID or IPv6 address.

        One that is made of a MAC address (with ff:fe in the middle, or 03:00 as NICs of NVIDIA do) becomes the one
        made of that address's stand-in.
        """
        if value < SMALL or value == ALL_ONES_64:
            return value
        octets = value.to_bytes(8, "big")
        flipped = 0x02 if octets[3:5] == b"\xff\xfe" else 0x00  # an interface identifier inverts the bit for `local`
        if octets[3:5] in (b"\xff\xfe", b"\x03\x00") and not octets[0] & 1:
            mac = self.mac(bytes([octets[0] ^ flipped]) + octets[1:3] + octets[5:])
            fresh = bytes([mac[0] ^ flipped]) + mac[1:3] + octets[3:5] + mac[3:]
        else:
            fresh = self._digest("guid", octets)[:8]
        return int.from_bytes(fresh, "big")

    def _order(self, prefix: bytes, low: int, high: int) -> List[int]:
        """A keyed order of low..high for the octet that follows `prefix`."""
        seed = bytes([low, high]) + prefix
        known = self._orders.get(seed)
        if known is None:
            known = sorted(range(low, high + 1), key=lambda octet: self._digest("ipv4", seed + bytes([octet])))
            self._orders[seed] = known
        return known

    def ipv4(self, octets: bytes) -> bytes:
        """Octet by octet, so that addresses of one network (by whole octets) stay in one network.

        The first octet stays, private prefixes as well, and octets of 0 and 255: networks, masks, broadcasts.
        """
        first, second = octets[0], octets[1]
        if first in (0, 127) or first >= 224:
            return octets
        fresh = bytearray([first])
        for place in (1, 2, 3):
            octet = octets[place]
            if octet in (0, 255) or (place == 1 and (first, second) in ((192, 168), (169, 254))):
                fresh.append(octet)
                continue
            low, high = (16, 31) if place == 1 and first == 172 and 16 <= second <= 31 else (1, 254)
            fresh.append(self._order(octets[:place], low, high)[octet - low])
        return bytes(fresh)

    def ipv6(self, octets: bytes) -> bytes:
        """Group by group in the upper half, as a GUID in the lower; link-local, multicast and loopback stay so."""
        if not any(octets[:10]) and octets[10:12] == b"\xff\xff":
            return octets[:12] + self.ipv4(octets[12:])
        if octets[0] == 0xFF:
            return octets
        return self.prefix(octets[:8]) + self.guid(int.from_bytes(octets[8:], "big")).to_bytes(8, "big")

    def prefix(self, octets: bytes) -> bytes:
        """The upper half of an IPv6 address or GID: a network's prefix; link-local stays."""
        if octets[0] == 0xFE and octets[1] & 0xC0 == 0x80:
            return octets
        upper = octets[:2]
        for place in (2, 4, 6):
            group = octets[place : place + 2]
            pad = self._digest("ipv6", octets[:place])
            fresh = bytes([group[0] ^ pad[0], group[1] ^ pad[1]])
            upper += fresh if any(group) and any(fresh) else group
        return upper

    def uuid(self, text: str) -> str:
        """A UUID; the version digit and all zeros stay."""
        digits = text.replace("-", "").lower()
        if not digits.strip("0"):
            return text
        fresh = self._digest("uuid", digits.encode("ascii")).hex()[:32]
        fresh = fresh[:12] + digits[12] + fresh[13:]
        return "-".join((fresh[:8], fresh[8:12], fresh[12:16], fresh[16:20], fresh[20:]))

    def shape(self, text: str) -> str:
        """A serial number: digits for digits, letters for letters, the rest as it is."""
        if not text.strip("0"):
            return text
        stream = self._digest("serial", text.encode("utf-8", "surrogateescape"))
        out = []
        for place, char in enumerate(text):
            if place % 32 == 0 and place:
                stream = self._digest("more", stream)
            byte = stream[place % 32]
            if "0" <= char <= "9":
                out.append(str(byte % 10))
            elif "a" <= char <= "z":
                out.append(chr(97 + byte % 26))
            elif "A" <= char <= "Z":
                out.append(chr(65 + byte % 26))
            else:
                out.append(char)
        return "".join(out)
