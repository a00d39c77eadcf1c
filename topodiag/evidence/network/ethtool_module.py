"""`ethtool -m`: a lane of a transceiver without light, or with too little of it, while its other lanes have light.

    Rcvr signal avg optical power(Channel 3)  : 0.0001 mW / -40.00 dBm
    Laser rx power low alarm   (Channel 3)    : On
    Module Rx loss of signal  (Channel 3)     : On

A port without a cable has no lane with light: nothing is said of it. Copper has no such fields. Format: ethtool 5.10
to 6.11 (sff-common.c, qsfp.c, cmis.c).
"""

from __future__ import annotations

import re

from topodiag.evidence.interface import Blob, Parsed
from topodiag.evidence.sentences import Telling, event
from topodiag.model.system import REPORTED, KernelEvent
from topodiag.model.topics import Topic

_POWER = re.compile(
    r"\s{0,60}Rcvr signal avg optical power\s{0,4}\(Channel (\d{1,2})\)\s{0,40}: \d{1,3}\.\d{1,6} mW / (-inf"
    r"|-?\d{1,3}\.\d{1,4}) dBm"
)
_FLAG = re.compile(
    r"\s{0,60}((?:Module )?(?:Rx|Tx) (?:loss of (?:signal|lock)|fault)|Laser rx power low alarm|Rx loss of"
    r" (?:signal|lock))"
    r"\s{0,12}\((?:Channel|Lane|lane) (\d{1,2})\)\s{0,40}: (On|Yes|Off|No)\b"
)
DARK_DBM = -20.0
"""Below any receiver's sensitivity: no optics of 25 Gb/s a lane and more are specified under -14 dBm."""


class EthtoolModule(Telling):
    """Lanes of a transceiver that get no light."""

    kind = "ethtool-module"
    speaks_of = frozenset({Topic.INTERFACES})
    trust = 55
    a_piece = "it speaks of one transceiver"

    def recognises(self, head: str) -> bool:
        return "(Channel " in head and any(_POWER.match(line) for line in head.split("\n"))

    def parse(self, blob: Blob) -> Parsed[KernelEvent]:
        parsed: Parsed[KernelEvent] = Parsed()
        lit: set[str] = set()
        dark: dict[str, tuple[int, str]] = {}
        flagged: dict[str, tuple[int, str]] = {}
        for number, line in blob.lines():
            parsed.lines = number
            power, flag = _POWER.match(line), _FLAG.match(line)
            if power is not None and (power[2] == "-inf" or float(power[2]) < DARK_DBM):
                dark.setdefault(power[1], (number, line))
            elif power is not None:
                lit.add(power[1])
            elif flag is not None and flag[3] in ("On", "Yes"):
                flagged.setdefault(flag[2], (number, line))
        if lit:
            for number, line in {**flagged, **dark}.values():
                said = "a lane of the transceiver gets no light: " + " ".join(line.split())
                parsed.records.append(event(f"{REPORTED}link-errors", said, blob, number, line))
        return parsed
