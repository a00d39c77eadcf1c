"""NCCL's labels as people know the devices: `GPU/0-61000` is GPU3, `NET/0-3` mlx5_3; a path is its file's name."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from topodiag.model.nccl_tree import Element
from topodiag.nccl.numbers import bus_id
from topodiag.nccl.topo.changes import gpus_of

Names = Mapping[str, str]


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


def spell(label: str, names: Names) -> str:
    return names.get(label, label)


def spell_order(order: Iterable[str], names: Names) -> str:
    """A channel from NET over the GPUs to NET; GPUs in a row without their word: `mlx5_0 GPU 0 1 2 3 mlx5_0`."""
    words: list[str] = []
    for label in order:
        word = spell(label, names)
        number = re.fullmatch(r"GPU([0-9]{1,4})", word)
        if number is None:
            words.append(word.removeprefix("GPU/"))
        elif words and (words[-1].isdigit()):
            words.append(number[1])
        else:
            words += ["GPU", number[1]]
    return " ".join(words)


def base_name(path: str) -> str:
    """The last part of a path, for headlines; `-`, `fixture:NAME` and the like as they are."""
    return path.rstrip("/").rpartition("/")[2] or path
