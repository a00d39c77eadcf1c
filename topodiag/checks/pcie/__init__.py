"""The checks of PCIe: links, errors, ACS."""
