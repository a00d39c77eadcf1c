"""What is trained, by the names of the options of `topodiag model step`: the defaults, and what a log says."""

from __future__ import annotations

from typing import Any

from topodiag.model.dimensions import OVERLAP, JobSettings

TRAINING = {
    "params": 70e9, "layers": 80, "hidden": 8192, "seq": 4096, "micro_batch": 1, "global_batch": None,
    "precision": "bf16", "experts": 0, "top_k": 2, "capacity": 1.0, "active_params": None, "kv_share": 1.0, "chunks": 1,
    "zero": 1, "shard": None, "sequence_parallel": False, "ulysses": False, "recompute": "selective",
    "efficiency": 0.5, "peak_tflops": None, "overlap": OVERLAP,
}  # fmt: skip
"""What is trained where the options do not say it: the defaults of `topodiag place`."""


def trained_of_log(logged: JobSettings) -> dict[str, Any]:
    """All options, those that the log says in the place of their defaults."""
    return {**TRAINING, "overlap": OVERLAP | dict.fromkeys(logged.waited_for, 0.0), **logged.options}
