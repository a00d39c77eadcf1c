"""Builds PCI config spaces for tests."""


def config(port: int = 6, acs: int | None = 0x1D, size: int = 4096, link: tuple[int, int] = (4, 16)) -> bytearray:
    """A PCIe function's config space: express capability at 0x40, an AER and (unless None) an ACS capability."""
    data = bytearray(size)
    data[0x00:0x04] = bytes.fromhex("de103023")
    data[0x06] = 0x10
    data[0x34] = 0x40
    if size > 64:
        data[0x40:0x44] = bytes([0x10, 0x00, 0x02 | port << 4, 0x00])
        data[0x4C:0x4E] = (5 | 16 << 4).to_bytes(2, "little")
        data[0x52:0x54] = (link[0] | link[1] << 4).to_bytes(2, "little")
    if size >= 0x200:
        data[0x100:0x104] = (0x0001 | 2 << 16 | (0x148 if acs is not None else 0) << 20).to_bytes(4, "little")
    if size >= 0x200 and acs is not None:
        data[0x148:0x14C] = (0x000D | 1 << 16).to_bytes(4, "little")
        data[0x14C:0x14E] = b"\x5f\x00"
        data[0x14E:0x150] = acs.to_bytes(2, "little")
    return data
