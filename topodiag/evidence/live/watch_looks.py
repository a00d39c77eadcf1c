"""How a file of `topodiag watch` is told from its first bytes, apart from its reader, which few commands need."""

from __future__ import annotations

import re

from topodiag.lazy import regex

LOOKS = regex(rb'^\{"time":[0-9.]{1,20},"up":[0-9.]{1,20},"watch":1,"host":"', re.M)
