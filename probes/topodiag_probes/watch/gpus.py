"""NVLinks and errors of the GPUs by NVML, asked in a child process: a call into a driver can hang."""

import json
from typing import Any, Callable, Dict, List, Optional

from topodiag_probes.interface import Context, Outcome
from topodiag_probes.items import nvml
from topodiag_probes.watch.states import MAX_VALUES, Values

LIMIT_S = 20.0
"""Seconds for one answer; calls that block for 45 s are known (DCGM, issue 313)."""


class Watched(nvml.Nvml):
    """States of NVLinks, and counters of errors."""

    id = "nvml-watch"
    job = "watch"
    lists = ("gpus",)


def read(emit: nvml.Emit, _arguments: List[str]) -> None:
    """The worker's job."""
    nvml.read(emit, ["watch"], _gpu)


def _gpu(asker: nvml.Asker, index: int, handle: Any) -> Dict[str, Any]:
    return {
        "index": index,
        "pcie_replay": asker.ask("nvmlDeviceGetPcieReplayCounter", handle),
        "ecc_uncorrected": asker.ask("nvmlDeviceGetTotalEccErrors", handle, 1, 0),
        "remapped_rows": asker.ask("nvmlDeviceGetRemappedRows", handle),
        "nvlinks": [
            {"link": link, "state": state, "errors": nvml.link_errors(asker, handle, link)}
            for link, state in nvml.link_states(asker, handle)
        ],
    }


def sample(
    ctx: Context, end: float, ask: Callable[[Context, float, Outcome], None] = Watched().run
) -> Optional[Values]:
    """What NVML says by the monotonic time `end`; nothing where there is no NVML, None where it did not answer. A GPU
    that NVML has lost has the error's name for a state."""
    out = Outcome()
    ask(ctx, end, out)
    if out.status == "absent":
        return {}
    try:
        document = json.loads((out.data or b"").decode("ascii", "replace"))
    except ValueError:
        return None
    if out.status != "ok" or not isinstance(document, dict):
        return None
    values: Values = {}
    for gpu in document.get("gpus") or ():
        _take(values, gpu)
    return values


def _take(values: Values, gpu: Dict[str, Any]) -> None:
    label = "gpu%s" % gpu.get("index")
    values[label, "state"] = str(gpu["error"]) if gpu.get("error") else "answers"
    for key in ("pcie_replay", "ecc_uncorrected"):
        _count(values, label, key, gpu.get(key))
    rows = gpu.get("remapped_rows")
    if isinstance(rows, list) and len(rows) == 4:  # nvmlDeviceGetRemappedRows: correctable, uncorrectable, ...
        _count(values, label, "remapped_rows", rows[1])
    for link in gpu.get("nvlinks") or ():
        part = "%s/link%s" % (label, link.get("link"))
        if link.get("state") in (0, 1) and len(values) < MAX_VALUES:
            values[part, "state"] = "active" if link["state"] else "inactive"
        for key, count in (link.get("errors") or {}).items():
            _count(values, part, key, count)


def _count(values: Values, part: str, key: str, count: Any) -> None:
    if isinstance(count, int) and not isinstance(count, bool) and count >= 0 and len(values) < MAX_VALUES:
        values[part, key] = count
