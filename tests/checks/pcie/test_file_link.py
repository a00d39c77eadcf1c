"""PCI001 of links that no capture shows: in a topology file, or in places and link lines that a filter left."""

from pathlib import Path

import pytest

from tests.tables import examples, texts
from topodiag.api import diagnose
from topodiag.app.topo import check_topology
from topodiag.model.finding import Severity, Status

HEALTHY = (Path(__file__).parents[3] / "fixtures" / "topo" / "dgx-h100-healthy" / "topo.xml").read_text()


def with_lanes(*gpus: int, lanes: str = "4") -> str:
    """The healthy file with the lanes of these GPUs changed."""
    text = HEALTHY
    for gpu in gpus:
        at = text.rindex("<pci", 0, text.index(f'dev="{gpu}" sm='))
        head, rest = text[:at], text[at:]
        text = head + rest.replace('link_width="16"', f'link_width="{lanes}"', 1)
    return text


def judged(tmp_path: Path, text: str):  # type: ignore[no-untyped-def]
    place = tmp_path / "topo.xml"
    place.write_text(text)
    result = check_topology(str(place))
    return result, [outcome for outcome in result.outcomes if outcome.check == "PCI001"]


def test_gpu5_at_x4_among_x16_is_an_error_with_its_line(tmp_path: Path) -> None:
    result, (outcome,) = judged(tmp_path, with_lanes(5))
    (finding,) = outcome.findings
    assert finding.severity is Severity.ERROR
    assert finding.where.gpus == ("GPU5",)
    assert finding.cost.gbs_lost == 36
    assert 'link_width="4"' in finding.evidence[0].text
    assert [finding.id for finding in result.findings] == ["PCI001"]


def test_a_file_whose_links_are_alike_is_clean_and_asks_for_no_sysfs(tmp_path: Path) -> None:
    result, (outcome,) = judged(tmp_path, HEALTHY)
    assert outcome.status is Status.CLEAN
    assert result.findings == ()


@pytest.mark.parametrize("gpus", [range(8), range(4)])
def test_lanes_that_most_or_half_have_are_built_so(tmp_path: Path, gpus: range) -> None:
    _, (outcome,) = judged(tmp_path, with_lanes(*gpus))
    assert outcome.status is Status.CLEAN


def test_a_width_of_nothing_is_no_reading(tmp_path: Path) -> None:
    _, outcomes = judged(tmp_path, with_lanes(5, lanes="0"))
    assert not any(outcome.findings for outcome in outcomes)


TEXTS = texts(__file__)
BRIDGED = TEXTS["bridged"]


def test_a_bridge_far_slower_than_the_gpu_below_it_is_an_error_with_its_line(tmp_path: Path) -> None:
    _, (outcome,) = judged(tmp_path, BRIDGED.format(speed="2.5 GT/s", lanes="1"))
    (finding,) = outcome.findings
    assert finding.message == "bridge ffff:ff:00.0 passes 0.188 GB/s in topo.xml, and a device below it takes 24"
    assert (finding.severity, finding.evidence[0].line) == (Severity.ERROR, 3)


@examples("speed", "lanes")
def test_a_shared_uplink_or_one_that_says_nothing_is_left_alone(tmp_path: Path, speed: str, lanes: str) -> None:
    _, (outcome,) = judged(tmp_path, BRIDGED.format(speed=speed, lanes=lanes))
    assert not outcome.findings


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
