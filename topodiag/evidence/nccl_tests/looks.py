"""How output of nccl-tests is recognised: by any line that nobody else writes, behind any label of a launcher."""

from __future__ import annotations

import re

from topodiag.lazy import regex

TABLE = regex(
    rb"\bnThreads?:? {1,4}\d{1,9} {1,4}nGpus:? {1,4}\d"
    rb"|(?:^|[\s\]>:|)])#[ \t]{1,40}size[ \t]{1,40}count[ \t]{1,40}type\b"
    rb"|\bAvg bus bandwidth[ \t]{0,20}:|\bOut of bounds values[ \t]{0,20}:"
    rb"|: Test (?:NCCL|CUDA|HIP) failure \S|\bTest timeout \(\d"
    # One row: size, count, type, operation, root, then time, algbw and busbw.
    rb"|(?<![\w.])\d{1,20}[ \t]{1,40}\d{1,20}[ \t]{1,40}(?:float|half|bfloat16|double|u?int(?:8|32|64)|char|int)"
    rb"(?:[ \t]{1,40}(?:sum|prod|max|min|avg|none))?(?:[ \t]{1,40}-?\d{1,6})?"
    rb"(?:[ \t]{1,40}\d{1,12}(?:\.\d{1,4})?){2}[ \t]{1,40}\d{1,9}\.\d{1,4}\b",
    re.M,
)
"""A row alone, the line of the averages alone, an error alone: people hand over what they have."""
