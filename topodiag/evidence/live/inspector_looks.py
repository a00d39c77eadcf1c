"""Whether a text holds records of NCCL's Inspector: by keys, since the version that it prints never changed."""

from __future__ import annotations

import re

LOOKS = re.compile(rb'^\{(?=[^\n]{0,4096}"(?:coll|p2p)_perf"\s{0,4}:\s{0,4}\{)', re.MULTILINE)
