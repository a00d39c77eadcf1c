"""Redaction; filled in below."""

from typing import Mapping, Optional

from topodiag_probes.bundle import Bundle

KEY_VARIABLE = "TOPODIAG_REDACT_KEY"


def read_key(x: Optional[str], environ: Mapping[str, str]) -> bytes:
    return b""


class Redactor:
    def __init__(self, key: Optional[bytes] = None) -> None:
        pass

    def bundle(self, bundle: Bundle) -> Bundle:
        return bundle
