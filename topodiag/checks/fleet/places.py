"""Parts of facts (`gpu3`, `gpu3/link6`, `mlx5_0/1`, a bus id) as the labels of findings."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypedDict

from topodiag.lazy import regex

_GPU = regex(r"gpu([0-9]{1,4})(?:/link([0-9]{1,4}))?\Z")
_BUS = regex(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]\Z")


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
        gpu = _GPU.match(part)
        if gpu is not None and gpu[2]:
            links[f"GPU{gpu[1]} link {gpu[2]}"] = None
        elif gpu is not None:
            gpus[f"GPU{gpu[1]}"] = None
        elif _BUS.match(part):
            links[part] = None
        elif part:
            # The one port of a card is the card to a reader.
            nics[part.removesuffix("/1")] = None
    return Labels(gpus=tuple(gpus), nics=tuple(nics), links=tuple(links))
