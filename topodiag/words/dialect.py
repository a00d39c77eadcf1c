"""Whose words are spoken: the names of links, the library and the commands of the maker of the GPUs (dialects.toml).

One object is asked by all that advises. It spells; which dialect a piece of evidence has, `model.maker` decides.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from enum import Enum
from functools import cached_property
from typing import Any, cast

from topodiag.lazy import dataclass, regex
from topodiag.words.own_data import own_data


class Maker(Enum):
    """Who made the GPUs that a piece of evidence is of."""

    NVIDIA = "NVIDIA"
    AMD = "AMD"


@dataclass(frozen=True)
class Dialect:
    """The words of one maker. `links` between GPUs, `library` of collectives; `table` of dialects.toml, which is read
    when one of its words is asked for, "" for the maker whose words the program is written in."""

    maker: Maker
    links: str
    library: str
    table: str = ""

    @cached_property
    def _table(self) -> Mapping[str, Any]:
        if not self.table:
            return {}
        return cast("Mapping[str, Any]", own_data("words/dialects")[self.table])

    @property
    def checks(self) -> Mapping[str, str]:
        """The checks that cannot apply, with why."""
        return cast("Mapping[str, str]", self._table.get("checks", {}))

    @property
    def phrases(self) -> Mapping[str, str]:
        """What this maker's words are for those of the program."""
        return cast("Mapping[str, str]", self._table.get("phrases", {}))

    @property
    def without(self) -> str:
        """What is said in place of a reason that only another maker's parts give."""
        return str(self._table.get("without", ""))

    @cached_property
    def _spoken(self) -> re.Pattern[str]:
        longest = sorted(self.phrases, key=len, reverse=True)
        return regex("|".join(rf"(?<![\w-]){re.escape(phrase)}(?![\w-])" for phrase in longest))

    @cached_property
    def _absent_pattern(self) -> re.Pattern[str]:
        return regex(self._table.get("absent", "") or "(?!)")

    def say(self, text: str) -> str:
        """The text in this maker's words."""
        return self._spoken.sub(lambda match: self.phrases[match[0]], text) if self.phrases else text

    def reason(self, text: str) -> str:
        """A reason in this maker's words, or that it asks for what this maker's GPUs do not have."""
        reason = self.say(text)
        return self.without if self._absent_pattern.search(reason) else reason

    def steps(self, texts: Iterable[str]) -> tuple[str, ...]:
        """Commands or steps in this maker's words; those that need what only another maker has are left out."""
        steps = dict.fromkeys(self.say(text) for text in texts)
        return tuple(text for text in steps if not self._absent_pattern.search(text))


NVIDIA = Dialect(Maker.NVIDIA, "NVLink", "NCCL")
AMD = Dialect(Maker.AMD, "xGMI", "RCCL", "amd")
