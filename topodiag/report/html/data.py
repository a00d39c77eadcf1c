"""The JSON inside the page: what `--format json` prints, packed, so that the page is also the data.

Of very many nodes the page keeps what was found and leaves out what repeats: facts, then outcomes.
"""

from __future__ import annotations

import gzip
import json
from base64 import b64encode
from collections.abc import Callable
from typing import Any

from markupsafe import Markup

from topodiag.lazy import dataclass
from topodiag.report.documents.write_json import plain
from topodiag.report.html.interface import Sheet, markup

PLAIN_BYTES = 16_384
"""A document up to this size stands in the page as it is; a greater one is packed."""
OUTCOMES_KEPT = 20_000
FINDINGS_KEPT = 5_000
INPUTS_KEPT = 5_000
_UNSAFE = {ord("<"): "\\u003c", ord(">"): "\\u003e", ord("&"): "\\u0026"}


@dataclass(frozen=True, slots=True)
class Data:
    """`text` as it stands in the page, `packed` whether it is gzip in base64, `bytes` the size of the JSON, `lacks`
    what was left out in words."""

    text: Markup
    packed: bool
    bytes: int
    lacks: str


def data_block(sheet: Sheet, shown: Callable[[str], str] = str) -> Data | None:
    """The document of a sheet as it is embedded, `shown` of its text; None where its command prints no JSON."""
    if sheet.document is None:
        return None
    document, lacks = _lighter(plain(sheet.document), sheet.lacks)
    text = shown(json.dumps(document, ensure_ascii=True, allow_nan=False, separators=(",", ":")))
    if len(text) <= PLAIN_BYTES:
        return Data(markup(text.translate(_UNSAFE)), packed=False, bytes=len(text), lacks=lacks)
    packed = b64encode(gzip.compress(text.encode(), 9, mtime=0)).decode()
    return Data(markup(packed), packed=True, bytes=len(text), lacks=lacks)


def _lighter(document: dict[str, Any], lacking: str) -> tuple[dict[str, Any], str]:
    """The document without what would make the page too heavy to send, and what that is."""
    lacks = [lacking] if lacking else []
    for key, most in (("outcomes", OUTCOMES_KEPT), ("findings", FINDINGS_KEPT), ("inputs", INPUTS_KEPT)):
        listed = document.get(key)
        if isinstance(listed, list) and len(listed) > most:
            document = {**document, key: listed[:most]}
            lacks.append(f"{len(listed) - most} of {len(listed)} {key}")
    return document, ", ".join(lacks)
