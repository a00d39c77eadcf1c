"""Samples in Prometheus' text format, as exporters print them and `curl` saves them.

    DCGM_FI_DEV_SM_CLOCK{gpu="0",UUID="GPU-...",Hostname="n1"} 1980

A line that is no sample costs itself, where prometheus_client's parser gives up the whole text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from topodiag.evidence.interface import ESCAPED, Blob
from topodiag.words.own_data import patterns
from topodiag.words.units import read_number

MAX_LINE = 8192
_LIKE = patterns("evidence/lines", "metrics")
SAMPLE = _LIKE["line"]
"""Name, labels without their braces, value and time."""


Sample = tuple[str, Mapping[str, str], float, int, str]
"""One value of one series: its name, the labels as the exporter gave them, also where a server has renamed them, the
value, and the number and text of the line."""


def labels_of(text: str) -> dict[str, str]:
    """The labels between the braces. A server that has labels of its own renames the exporter's: those count."""
    labels = {name: ESCAPED.sub(r"\1", value) for name, value in _LIKE["label"].findall(text)}
    return labels | {
        name.removeprefix("exported_"): value for name, value in labels.items() if name.startswith("exported_")
    }


def samples_of(blob: Blob, prefix: str) -> Iterator[Sample]:
    """The samples whose names begin so, in the order of the text; of those without a finite value none."""
    for number, whole in blob.lines():
        text = whole.strip()
        if not text.startswith(prefix) or len(text) > MAX_LINE:
            continue
        match = SAMPLE.fullmatch(text)
        if match is None:
            continue
        value = read_number(match[3])
        if value is not None:
            yield match[1], labels_of(match[2] or ""), value, number, text


def whole(value: float) -> int | None:
    """A sample as a count; None for what is none. Above 2^53 a sample has lost its last digits."""
    return int(value) if 0 <= value < 1 << 63 and value.is_integer() else None
