"""A port and its peer, as ibportstate shows them: told where the link is below what both have enabled."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pasted import loud, said

BLOCK = (
    "{peer}PortInfo:\n# Port info: Lid 2 port 9\nLinkState:.......................Active\n"
    "PhysLinkState:...................{state}\nLinkWidthSupported:..............1X or 4X\n"
    "LinkWidthEnabled:................{widths}\nLinkWidthActive:.................{width}X\n"
    "LinkSpeedSupported:..............2.5 Gbps or 5.0 Gbps or 10.0 Gbps\n"
    "LinkSpeedEnabled:................{speeds}\nLinkSpeedActive:.................{speed} Gbps\n"
)
ALL = "2.5 Gbps or 5.0 Gbps or 10.0 Gbps"
EXTENDED = "LinkSpeedExtEnabled:.............14.0625 Gbps or 25.78125 Gbps\nLinkSpeedExtActive:..............{} Gbps\n"
SMINFO = "sminfo: sm lid 394 sm guid 0x2c9030012ab40, activity count 28713761 priority 0 state 3 SMINFO_MASTER\n"


def port(width: int = 4, speed: str = "10.0", *, speeds: str = ALL, widths: str = "1X or 4X", up: bool = True) -> str:
    return BLOCK.format(
        peer="", state="LinkUp" if up else "Polling", widths=widths, width=width, speeds=speeds, speed=speed
    )


def both(width: int = 4, speed: str = "10.0", **peer: str) -> str:
    return port(width, speed) + "Peer " + port(width, speed, **peer)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (both(1), "1X of 4X"),
        (both(4, "2.5"), "2.5 Gb/s a lane, of 10 Gb/s"),
        (port() + EXTENDED.format("14.0625") + "Peer " + port() + EXTENDED.format("14.0625"), "25.8 Gb/s"),
    ],
)
def test_a_link_below_what_both_ends_have_enabled_is_told(tmp_path: Path, text: str, words: str) -> None:
    [finding] = said(tmp_path, text)["findings"]
    assert (finding["id"], finding["severity"]) == ("NIC002", "warning")
    assert words in finding["message"]


@pytest.mark.parametrize(
    "text",
    [
        both(),
        both(1, widths="1X"),
        both(4, "5.0", speeds="2.5 Gbps or 5.0 Gbps"),
        port(1),
        port(1, up=False) + "Peer " + port(1),
        port() + EXTENDED.format("25.78125") + "Peer " + port() + EXTENDED.format("25.78125"),
        SMINFO,
    ],
)
def test_what_both_ends_have_or_one_end_limits_is_read_and_quiet(tmp_path: Path, text: str) -> None:
    assert loud(tmp_path, text) == []
    assert said(tmp_path, text)["inputs"][0]["kind"] == "network-words"
