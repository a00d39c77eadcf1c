"""Whose words are spoken: the names of links, the library and the commands of the maker of the GPUs (dialects.toml).

One object is asked by all that advises. It spells; which dialect a piece of evidence has, `model.maker` decides.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import field
from enum import Enum
from functools import cached_property
from pathlib import Path

from topodiag.lazy import dataclass, regex


class Maker(Enum):
    """Who made the GPUs that a piece of evidence is of."""

    NVIDIA = "NVIDIA"
    AMD = "AMD"


@dataclass(frozen=True)
class Dialect:
    """The words of one maker. `links` between GPUs, `library` of collectives; `checks` that cannot apply, with why."""

    maker: Maker
    links: str
    library: str
    checks: Mapping[str, str] = field(default_factory=dict)
    phrases: Mapping[str, str] = field(default_factory=dict)
    absent: str = ""

    @cached_property
    def _spoken(self) -> re.Pattern[str]:
        longest = sorted(self.phrases, key=len, reverse=True)
        return regex("|".join(rf"(?<![\w-]){re.escape(phrase)}(?![\w-])" for phrase in longest))

    @cached_property
    def _absent(self) -> re.Pattern[str]:
        return regex(self.absent)

    def say(self, text: str) -> str:
        """The text in this maker's words."""
        return self._spoken.sub(lambda found: self.phrases[found[0]], text) if self.phrases else text

    def steps(self, texts: Iterable[str]) -> tuple[str, ...]:
        """Commands or steps in this maker's words; those that need what only another maker has are left out."""
        said = dict.fromkeys(self.say(text) for text in texts)
        return tuple(text for text in said if not (self.absent and self._absent.search(text)))


def _loaded() -> Dialect:
    held = tomllib.loads(Path(__file__).with_name("dialects.toml").read_text(encoding="utf-8"))["amd"]
    return Dialect(Maker.AMD, "xGMI", "RCCL", held["checks"], held["phrases"], held["absent"])


NVIDIA = Dialect(Maker.NVIDIA, "NVLink", "NCCL")
AMD = _loaded()
