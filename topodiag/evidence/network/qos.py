"""`mlnx_qos -i IF` and `dcb pfc show dev IF`: which priorities have flow control, and which DSCP rides which priority.

    Priority trust state: dscp
    dscp2prio mapping:
            prio:0 dscp:07,06,05,04,03,02,01,00,
    PFC configuration:
            priority    0   1   2   3   4   5   6   7
            enabled     0   0   0   1   0   0   0   0
    pfc-cap 8 macsec-bypass off delay 0
    prio-pfc 0:off 1:off 2:off 3:on 4:off 5:off 6:off 7:off

Format: mlnx-tools, python/mlnx_qos; iproute2, dcb/dcb_pfc.c.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from topodiag.evidence.network import rdma_words as words
from topodiag.evidence.network.ethtool import named_interface
from topodiag.evidence.page import Line, OfPage, Page

UNNAMED = "the interface"
"""What an interface is called that the text does not name."""
PRIORITIES = 8
CODE_POINTS = 64


class Qos(OfPage):
    """Flow control by priority, and what decides the priority, from `mlnx_qos` and `dcb`."""

    def read_page(self, page: Page) -> None:
        name = named_interface(page.blob.item) or UNNAMED
        mapped: dict[str, tuple[Line, dict[int, int]]] = {}
        for line in page.lines():
            if asked := _asked(line.bare):
                name = words.device_name(asked) or UNNAMED
                continue
            priority, _, listed = line.bare.replace(" ", "").removeprefix("prio:").partition("dscp:")
            codes = [code for code in listed.split(",") if code.isdecimal() and len(code) < 3]
            if codes and len(priority) == 1 and priority in "01234567":
                mapped.setdefault(name, (line, {}))[1].update(dict.fromkeys(map(int, codes), int(priority)))
            for field, value in _said(line.bare):
                line.offer(page.draft.netdev(name), field, value)
        for name, (line, priorities) in mapped.items():
            pairs = [f"{code}:{priority}" for code, priority in sorted(priorities.items())]
            line.offer(page.draft.netdev(name), "priority_of", tuple(pairs[:CODE_POINTS]))


def _asked(text: str) -> str:
    """The interface that a command names, "" in another line."""
    options = ("-i", "--interface") if "mlnx_qos " in text else ("dev",) if "dcb " in text and "pfc" in text else ()
    return next((name for option, name in pairwise(text.replace("=", " ").split()) if option in options), "")


def _said(text: str) -> Iterator[tuple[str, object]]:
    """What a line says of the trust, and of the priorities with flow control."""
    key, *cells = text.split() or [""]
    if text.startswith("Priority trust state:") and cells[-1].lower() in ("pcp", "dscp", "both"):
        yield "trust", cells[-1].lower()
    elif key == "enabled" and len(cells) == PRIORITIES and set(cells) <= {"0", "1"}:
        yield "lossless", tuple(at for at, cell in enumerate(cells) if cell == "1")
    elif key == "prio-pfc":
        yield "lossless", tuple(int(cell[0]) for cell in cells if cell[:1].isdecimal() and cell[1:] == ":on")
