"""Incidents with all kinds of evidence: the root cause comes first, and what follows from it stands below."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import topodiag
from topodiag.model.finding import Severity

INCIDENTS = Path(__file__).resolve().parents[2] / "shared" / "corpus" / "incidents"
NAMES = sorted(path.parent.name for path in INCIDENTS.glob("*/truth.json"))
MISSED = {
    "pods-without-rdma-devices": "the pod is not known to run on the node whose bundle shows its NICs",
}
"""Incidents whose root cause does not come first yet, and why."""
NOT_IN_CATALOGUE = {"gpu-off-the-bus": "GPU001"}
"""The check of a root cause that had none when the truth was written."""

pytestmark = pytest.mark.skipif(not NAMES, reason=f"the corpus is not at {INCIDENTS}")


@pytest.mark.parametrize("name", NAMES)
def test_the_root_cause_comes_first(name: str) -> None:
    truth: dict[str, Any] = json.loads((INCIDENTS / name / "truth.json").read_text())
    found = topodiag.diagnose(INCIDENTS / name).findings
    wanted = {check for root in truth["root_causes"] for check in root["check_ids"] if check}
    wanted |= {NOT_IN_CATALOGUE[name]} if name in NOT_IN_CATALOGUE else set()
    if not wanted:
        assert not [each.id for each in found if each.severity is Severity.ERROR]
        return
    is_first = bool(found) and found[0].id in wanted
    assert is_first != (name in MISSED), f"said {[each.id for each in found]}, wanted one of {sorted(wanted)}"
    consequences = {check for each in truth["consequences"] for check in each["check_ids"]} - wanted
    if is_first:
        assert not [each.id for each in found if each.id in consequences and each.follows is None], "beside the cause"
