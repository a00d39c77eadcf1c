"""NCCL's labels as people know the devices: `GPU/0-61000` is GPU3, `NET/0-3` mlx5_3."""

from __future__ import annotations

import re

from topodiag.model.nccl_tree import Element
from topodiag.nccl.numbers import bus_id
from topodiag.nccl.topo.changes import gpus_of


def device_names(tree: Element) -> dict[str, str]:
    """Label to name for the GPUs and NICs of a tree; of several hosts nothing, for their numbers repeat."""
    if len({cpu.get("host_hash") for cpu in tree.having("cpu")}) > 1:
        return {}
    names = {f"GPU/0-{bus_id(pci.get('busid') or ''):x}": f"GPU{number}" for number, pci in gpus_of(tree).items()}
    nets: dict[str, str] = {}
    for element in tree.walk():
        dev, name = element.get("dev") or "", element.get("name")
        if element.tag == "net" and name and re.fullmatch(r"[0-9]{1,4}", dev):
            # One number twice names neither.
            label = f"NET/0-{int(dev):x}"
            nets[label] = name if nets.get(label, name) == name else ""
    return names | {label: name for label, name in nets.items() if name}
