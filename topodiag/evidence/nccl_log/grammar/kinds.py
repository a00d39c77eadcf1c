"""The kinds of the `text` table: lines that are kept as they were printed, by what they speak of.

Wordings by NCCL version: src/init.cc, src/net.cc, src/graph/*.cc, src/transport/*.cc, src/misc/*.cc.
"""

from __future__ import annotations

from topodiag.words.own_data import own_data

KINDS: tuple[str, ...] = tuple(own_data("evidence/nccl_log/grammar/kinds"))
