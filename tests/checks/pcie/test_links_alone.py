"""PCI001 of links whose devices nobody names: places and link lines that a loop or a filter left of lspci."""

from pathlib import Path

import pytest

from topodiag.api import diagnose


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
