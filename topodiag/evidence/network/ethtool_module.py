"""`ethtool -m`: a lane of a transceiver without light, or with too little of it, while its other lanes have light.

    Rcvr signal avg optical power(Channel 3)  : 0.0001 mW / -40.00 dBm
    Laser rx power low alarm   (Channel 3)    : On
    Module Rx loss of signal  (Channel 3)     : On

    Laser output power                        : 0.1514 mW / -8.20 dBm
    Laser output power low alarm              : On

A port without a cable has no lane with light: nothing is said of it, nor of a laser that is off. Copper has no such
fields. Format: ethtool 5.10 to 6.11 (sff-common.c, sfpdiag.c, qsfp.c, cmis.c).
"""

from __future__ import annotations

from topodiag.evidence.interface import Blob, Parsed
from topodiag.evidence.sentences import Reporting, report
from topodiag.lazy import regex
from topodiag.model.events import Event
from topodiag.model.topics import Topic

_POWER = regex(
    r"\s{0,60}Rcvr signal avg optical power\s{0,4}\(Channel (\d{1,2})\)\s{0,40}: \d{1,3}\.\d{1,6} mW / (-inf"
    r"|-?\d{1,3}\.\d{1,4}) dBm"
)
_FLAG = regex(
    r"\s{0,60}((?:Module )?(?:Rx|Tx) (?:loss of (?:signal|lock)|fault)|Laser rx power low alarm|Rx loss of"
    r" (?:signal|lock))"
    r"\s{0,12}\((?:Channel|Lane|lane) (\d{1,2})\)\s{0,40}: (On|Yes|Off|No)\b"
)
_OF_ONE_LANE = regex(
    r"\s{0,60}(Laser output|Receiver signal average optical|Laser rx) power(?: (low|high) alarm)?\s{0,40}:"
    r" (?:\d{1,3}\.\d{1,6} mW / (-inf|-?\d{1,3}\.\d{1,4}) dBm|(On|Off))\s*\Z"
)
"""SFP modules have one lane, and flags of their own for what is out of the bounds that their maker set."""
_SIDES = {"Laser output": "sends", "Receiver signal average optical": "gets", "Laser rx": "gets"}
DARK_DBM = -20.0
"""Below any receiver's sensitivity: no optics of 25 Gb/s a lane and more are specified under -14 dBm."""


class EthtoolModule(Reporting):
    """Lanes of a transceiver that get no light."""

    kind = "ethtool-module"
    speaks_of = frozenset({Topic.INTERFACES})
    trust = 55
    a_piece = "it speaks of one transceiver"

    def recognises(self, head: str) -> bool:
        lines = head.split("\n") if "optical power" in head else []
        return any(_POWER.match(line) or _OF_ONE_LANE.match(line) for line in lines)

    def parse(self, blob: Blob) -> Parsed[Event]:
        parsed: Parsed[Event] = Parsed()
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
                parsed.records.append(report("fabric.link_errors", said, blob, number, line))
        for number, line, said in _alarms(blob):
            parsed.records.append(report("fabric.link_errors", said, blob, number, line))
        return parsed


def _alarms(blob: Blob) -> list[tuple[int, str, str]]:
    """Alarms of a module of one lane about light that is there."""
    power: dict[str, float] = {}
    alarms: list[tuple[int, str, str, str]] = []
    for number, line in blob.lines():
        found = _OF_ONE_LANE.match(line)
        if found is None:
            continue
        side = _SIDES[found[1]]
        if found[2] is None and found[3] is not None:
            power[side] = float(found[3])
        elif found[2] is not None and found[4] == "On":
            alarms.append((number, line, side, found[2]))
    lit = [each for each in alarms if power.get(each[2], DARK_DBM) > DARK_DBM]
    made = []
    for number, line, side, which in lit:
        light = f"{side} too {'little' if which == 'low' else 'much'} light ({power[side]:g} dBm)"
        made.append((number, line, f"the transceiver {light}, by its own alarm: {' '.join(line.split())}"))
    return made
