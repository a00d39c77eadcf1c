"""Topology files of AMD's machines, written for the tests: eight MI300X, and rings of four MI100."""

from collections.abc import Collection

_CPU = '<cpu numaid="{}" affinity="ffff" arch="x86_64" vendor="{}" familyid="{}" modelid="{}">'
_PCI = '<pci busid="{}" class="{}" vendor="{}" device="{}" link_speed="32.0 GT/s PCIe" link_width="16">'


def bus(dev: int) -> str:
    return f"0000:{0x10 + 0x10 * dev:02x}:00.0"


def mi300x(
    *,
    lost: Collection[tuple[int, int]] = (),
    nics: int = 0,
    version: str = "2",
    gcn: str = "gfx942",
    intel: bool = True,
) -> bytes:
    """Eight GPUs on two CPUs, one xGMI link between every two but for `lost` pairs, and a NIC below each switch."""
    lines = [f'<system version="{version}">']
    for numa in range(2):
        lines.append(_CPU.format(numa, "GenuineIntel", 6, 143))
        for dev in range(4 * numa, 4 * numa + 4):
            lines.append(_PCI.format(f"0000:{0x0C + 0x10 * dev:02x}:00.0", "0x060400", "0x1000", "0xc030"))
            lines.append(_PCI.format(bus(dev), "0x120000", "0x1002", "0x74a1"))
            lines.append(f'<gpu dev="{dev}" sm="304" gcn="{gcn}" arch="38911" rank="{dev}" gdr="1">')
            for peer in range(8):
                if peer != dev and (min(dev, peer), max(dev, peer)) not in lost:
                    lines.append(f'<xgmi target="{bus(peer)}" count="1" tclass="0x120000"/>')
            lines += ["</gpu>", "</pci>"]
            if dev < nics:
                lines.append(_PCI.format(f"0000:{0x0E + 0x10 * dev:02x}:00.0", "0x020000", "0x15b3", "0x1021"))
                name = f'<net name="mlx5_{dev}" dev="{dev}" speed="400000" port="1" guid="0x{dev + 1:x}"'
                lines += ["<nic>", f'{name} maxconn="131072" gdr="1"/>', "</nic>", "</pci>"]
            lines.append("</pci>")
        lines.append("</cpu>")
    return "\n".join([*lines, "</system>", ""]).encode()
