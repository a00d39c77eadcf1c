"""Parts of facts (`gpu3`, `gpu3/link6`, `mlx5_0/1`, a bus id) as the labels of findings."""

from __future__ import annotations

from collections.abc import Iterable

from topodiag.model.busid import normalise_bus_id
from topodiag.model.finding import Where


def label_of(part: str) -> str:
    """One part as a reader knows it."""
    where = where_of("", (part,))
    return next(iter((*where.gpus, *where.nics, *where.links)), part)


def where_of(host: str, parts: Iterable[str]) -> Where:
    """Some parts of a host by their labels; a link stands without its GPU."""
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
    return Where((host,), tuple(gpus), tuple(nics), links=tuple(links))
