"""Lines of any training that time a save of a checkpoint for which it stops.

    Finished saving the checkpoint in 393.86 seconds.      torchtitan
    save-checkpoint ....: (612345.11, 612399.02)           Megatron-LM's timers, in milliseconds
    Finished blocking save in 311.20 seconds.              Orbax

What is saved in the background stops nothing, and what is loaded is no save.

SOURCE: torchtitan components/checkpoint.py; Megatron-LM megatron/core/timers.py; orbax async_checkpointer.py.
"""

from __future__ import annotations

import re

from topodiag.evidence.nccl_log.grammar.numbers import compiled
from topodiag.evidence.nccl_log.grammar.rank_states import LATE

LEAST_S = 120.0
"""Seconds below which a save is what large models need."""
MOST = 600
"""Characters of a line that are looked at."""

_SAVED = compiled(r"(?i:\bsav(?:e|ed|ing)|\bwrit(?:e|ing|ten)\b|\bwrote\b|_save_?|save_|-save|save-)")
_WHAT = compiled(r"(?i:checkpoint|ckpt)|\bblocking save\b")
_TIMERS = compiled(
    r"\bsave[-_]checkpoint[ .]{0,60}: {0,4}"
    r"(?:\(\d{1,9}\.\d{1,6}, {0,2}(?P<most>\d{1,9}\.\d{1,6})\)|(?P<one>\d{1,9}\.\d{1,6}))"
)
_TOOK = compiled(
    r"(?:\bin|\btook|\btakes|\bafter|\belapsed|\bduration|\btime\w{0,12}|[:=]) {0,2}[:=]? {0,2}(?<![\w.])"
    r"(?P<much>\d{1,6}(?:\.\d{1,6})?) ?(?P<unit>ms|s|secs?|seconds?|m|mins?|minutes?)(?![\w/])"
)
_NAMED = compiled(
    r"(?:_s|_sec|_secs|_seconds| ?\((?:s|sec|seconds)\))[\"']? {0,2}[:=] {0,2}"
    r"(?P<much>\d{1,6}(?:\.\d{1,6})?)(?![\w/.%])"
)
_UNITS = {"ms": 1e-3, "m": 60.0}
_ASIDE = compiled(r"\b[\w/]{1,80}\.py:\d{1,6}|\([^()]{0,60}\bif\b[^()]{0,60}\)|\. Continuing .{0,200}")
"""Which program prints, what the line says of other cases, and what follows."""
_NO_STOP = compiled(
    r"(?i:async|background|in a thread|non-?blocking|load|restor|resum|\bread|every|interval|freq|period|time-?out"
    r"|\bttl\b|retention|\bwill\b|\bwould\b|\bmax\w{0,6}\b|limit|wait(?:ing)? (?:up )?to|delet|remov|upload)"
    r"|\?\s*$|\bdef |^\s*#"
)

WORDS = (
    b"inished saving", b"ocking save", b"aved checkpoint", b"aved the checkpoint", b"aved a checkpoint",
    b"heckpoint saved", b"heckpoint was saved", b"heckpoint written", b"heckpoint save", b"heckpoint_save",
    b"heckpoint write", b"heckpoint took", b"heckpoint in ", b"heckpoint: ", b"rote checkpoint",
    b"rote the checkpoint", b"Save duration", b"save-checkpoint", b"save_checkpoint", b"save checkpoint",
    b"for saving", b"ckpt_save", b"save_ckpt", b"ckpt saved", b"ckpt save", b"aved ckpt",
)  # fmt: skip
"""A line without any of these is none of theirs: that a save begins is what all trainings print."""


def pause_of(text: str) -> tuple[str, dict[str, str]] | None:
    """The kind of the event and how many seconds a save took, where training stopped for it for minutes."""
    if len(text) > MOST or _WHAT.search(text) is None:
        return None
    seconds = _seconds_of(text)
    return (LATE, {"what": "checkpoint", "seconds": f"{seconds:.1f}"}) if seconds >= LEAST_S else None


def _seconds_of(text: str) -> float:
    timers = _TIMERS.search(text)
    if timers is not None and (timers["most"] or "(ms)" in text):
        return float(timers["most"] or timers["one"]) / 1e3
    said = _ASIDE.sub("", text)
    if _SAVED.search(said) is None or _NO_STOP.search(said) is not None:
        return 0.0
    found: re.Match[str] | None = _TOOK.search(said)
    if found is not None:
        unit = found["unit"]
        return float(found["much"]) * _UNITS.get(unit if unit == "ms" else unit[0], 1.0)
    found = _NAMED.search(said)
    return float(found["much"]) if found is not None else 0.0
