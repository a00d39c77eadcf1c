"""ibnetdiscover: links from a switch to hosts, and those that run below others to adapters of the same name."""

from __future__ import annotations

import json
from pathlib import Path

from tests.tables import examples
from topodiag.api import diagnose

HEAD = (
    "vendid=0x2c9\nswitchguid=0x946dae0300aabbcc(946dae0300aabbcc)\n"
    'Switch\t41 "S-946dae0300aabbcc"\t\t# "MF0;leaf-03:MQM9700/U1" enhanced port 0 lid 12 lmc 0\n'
)


def fabric(*links: tuple[str, str]) -> str:
    rows = (
        f'[{n}]\t"H-946dae030011223{n}"[1](946dae030011223{n}) \t\t# "{name}" lid {40 + n} {runs}\n'
        for n, (name, runs) in enumerate(links, 1)
    )
    return HEAD + "".join(rows)


def found(tmp_path: Path, text: str) -> list[tuple[str, str]]:
    file = tmp_path / "net.txt"
    file.write_text(text)
    return [(finding["id"], finding["message"]) for finding in json.loads(diagnose(str(file)).to_json())["findings"]]


NDR = [("g1 mlx5_0", "4xNDR"), ("g2 mlx5_0", "4xNDR")]


def test_a_link_below_those_to_adapters_of_its_name_is_found(tmp_path: Path) -> None:
    [(check, message)] = found(tmp_path, fabric(*NDR, ("g3 mlx5_0", "4xHDR")))
    assert check == "NIC002"
    assert message.endswith("port 3 to g3 mlx5_0 port 1: runs at 4xHDR, 2 other links to mlx5_0 at 4xNDR")


@examples("links")
def test_what_may_be_built_so_is_no_finding(tmp_path: Path, links: list[tuple[str, str]]) -> None:
    assert found(tmp_path, fabric(*links)) == []


def ports(*speeds: str) -> str:
    rows = [
        f"CA   20{at}  1 0xa088c2030001{at}f10 4x {speed} - SW    31  {at} 0xfc6a1c0300a1b200"
        f" ( 'g{at} mlx5_0' - 'leaf-07' )"
        for at, speed in enumerate(speeds)
    ]
    return "\n".join(
        [*rows, "SW    31 33 0xfc6a1c0300a1b200 4x NDR - SW    73  7 0xfc6a1c0300c33000 ( 'leaf-07' - 's1' )"]
    )


def test_rows_of_ports_are_links_of_the_switch_whichever_end_they_are_of(tmp_path: Path) -> None:
    [(check, message)] = found(tmp_path, ports("NDR", "NDR", "HDR"))
    assert check == "NIC002"
    assert "leaf-07 port 2 to g2 mlx5_0 port 1: runs at 4xHDR" in message
    assert found(tmp_path, ports("NDR", "NDR", "NDR")) == []
