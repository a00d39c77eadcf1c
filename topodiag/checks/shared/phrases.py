"""The groups of phrases.toml: what a line says by its words, whoever prints it."""

from __future__ import annotations

import re
from functools import cache

from topodiag.lazy import dataclass, regex
from topodiag.model.finding import Severity
from topodiag.words.own_data import own_data


@dataclass(frozen=True, slots=True)
class Phrase:
    """One entry of phrases.toml; the head of that file explains each key."""

    words: re.Pattern[str]
    says: str = ""
    fix: str = ""
    cost: str = ""
    severity: Severity = Severity.WARNING
    expected: str = ""
    kind: str = ""


@cache
def phrases(group: str) -> tuple[Phrase, ...]:
    """All entries of a group, in the order of the file."""
    return tuple(_phrase(**entry) for entry in own_data("checks/shared/phrases")[group])


def _phrase(words: str, severity: str = "warning", **given: str) -> Phrase:
    return Phrase(regex(words), severity=Severity[severity.upper()], **given)


def phrase_in(group: str, text: str) -> Phrase | None:
    """The first entry of a group whose words are in a text."""
    return next((phrase for phrase in phrases(group) if phrase.words.search(text)), None)


def advice_by_words(text: str) -> str:
    """The first thing to do about an error with these words, "" where they say nothing by themselves."""
    phrase = phrase_in("error", text)
    return phrase.fix if phrase is not None else ""


def meaning(group: str, text: str) -> str:
    """What a line says by its words; "" where it has none of these."""
    phrase = phrase_in(group, text)
    return phrase.says if phrase is not None else ""
