"""PCI001 of links that no capture shows: in a topology file, or in places and link lines that a filter left."""

from pathlib import Path

import pytest

from tests.checks.wanted import Wanted, shown
from tests.tables import examples, texts
from topodiag.api import diagnose
from topodiag.app.topo import check_topology

HEALTHY = (Path(__file__).parents[3] / "fixtures" / "topo" / "dgx-h100-healthy" / "topo.xml").read_text()


def with_lanes(*gpus: int, lanes: str = "4") -> str:
    """The healthy file with the lanes of these GPUs changed."""
    text = HEALTHY
    for gpu in gpus:
        at = text.rindex("<pci", 0, text.index(f'dev="{gpu}" sm='))
        head, rest = text[:at], text[at:]
        text = head + rest.replace('link_width="16"', f'link_width="{lanes}"', 1)
    return text


TEXTS = texts(__file__)
BRIDGED = TEXTS["bridged"]


@examples("gpus", "lanes", "bridge", "wanted")
def test_links_of_a_topology_file(
    tmp_path: Path, gpus: list[int] | None, lanes: str | None, bridge: tuple[str, str] | None, wanted: Wanted
) -> None:
    """A healthy file in which these GPUs have other lanes, or one with a GPU below a bridge of this speed and width."""
    text = BRIDGED.format(speed=bridge[0], lanes=bridge[1]) if bridge else with_lanes(*gpus or (), lanes=lanes or "4")
    (tmp_path / "topo.xml").write_text(text)
    result = check_topology(str(tmp_path / "topo.xml"))
    (outcome,) = [outcome for outcome in result.outcomes if outcome.check == "PCI001"]
    assert shown(outcome, wanted) == wanted
    assert bridge or [finding.id for finding in result.findings] == ["PCI001"] * len(outcome.findings)


def links(*widths: int) -> str:
    return "".join(
        f"{0x21 + number:02x}:00.0\n\t\tLnkCap:\tPort #0, Speed 16GT/s, Width x16\n"
        f"\t\tLnkSta:\tSpeed 16GT/s, Width x{width}\n"
        for number, width in enumerate(widths)
    )


@pytest.mark.parametrize(
    ("text", "narrow"),
    [
        (links(16, 8, 16, 8), ["0000:22:00.0", "0000:24:00.0"]),
        (links(16, 16), []),
        (links(8, 8), []),
        (links(8), []),
        ("21:00.0 VGA compatible controller: ATI\n" + links(16, 8), []),
    ],
)
def test_of_functions_without_a_name_those_with_fewer_lanes_than_their_peers_are_found(
    text: str, narrow: list[str], tmp_path: Path
) -> None:
    file = tmp_path / "lspci.txt"
    file.write_text(text)
    findings = [finding for finding in diagnose(str(file)).findings if finding.id == "PCI001"]
    assert [finding.where.links for finding in findings] == [(place,) for place in narrow]
    assert all(finding.severity.name == "WARNING" for finding in findings)
