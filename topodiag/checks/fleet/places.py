"""Parts of facts (`gpu3`, `gpu3/link6`, `mlx5_0/1`, a bus id) as the labels of findings."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypedDict

from topodiag.model.busid import normalise_bus_id


class Labels(TypedDict):
    """The labels by their kind."""

    gpus: tuple[str, ...]
    nics: tuple[str, ...]
    links: tuple[str, ...]


def label_of(part: str) -> str:
    """One part as a reader knows it."""
    names = labels((part,))
    return next(iter((*names["gpus"], *names["nics"], *names["links"])), part)


def labels(parts: Iterable[str]) -> Labels:
    """The labels of some parts; a link stands without its GPU."""
    gpus: dict[str, None] = {}
    nics: dict[str, None] = {}
    links: dict[str, None] = {}
    for part in parts:
        device, _, link = part.partition("/link")
        gpu = device.removeprefix("gpu") if device.startswith("gpu") else ""
        if gpu.isdecimal() and link.isdecimal():
            links[f"GPU{gpu} link {link}"] = None
        elif gpu.isdecimal() and device == part:
            gpus[f"GPU{gpu}"] = None
        elif normalise_bus_id(part) == part:
            links[part] = None
        elif part:
            # The one port of a card is the card to a reader.
            nics[part.removesuffix("/1")] = None
    return Labels(gpus=tuple(gpus), nics=tuple(nics), links=tuple(links))
