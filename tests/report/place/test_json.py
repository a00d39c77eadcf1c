"""The JSON of `topodiag place audit` is of the published schema, whatever is audited."""

import json
from importlib.resources import files

import numpy as np
import pytest

from tests.valid import assert_valid
from topodiag.app.case.placement import PlaceOptions, open_cluster
from topodiag.checks.registry import Subject
from topodiag.checks.run import fold, run
from topodiag.model.cluster import Assignment, Demand, Ints
from topodiag.model.layout import Layout
from topodiag.placement.audit import Audit, audit
from topodiag.placement.groups import Talk, talk_of_groups, talk_of_layout
from topodiag.report.documents.from_model import plain
from topodiag.report.place.layouts import audit_json

SCHEMA = json.loads((files("topodiag.report") / "schema" / "place-1.0.schema.json").read_text())
CLUSTER = open_cluster(PlaceOptions(system="dgx-h100", nodes=4, leaf=2, oversubscription=2.0))
RANKS = np.arange(32)
DEALT = RANKS % 4 * 8 + RANKS // 4


def valid(report: Audit) -> dict[str, object]:
    document: dict[str, object] = json.loads(
        json.dumps(plain(audit_json(report, fold(run(Subject.LAYOUT, [report])))), allow_nan=False)
    )
    assert_valid(document, SCHEMA)
    return document


@pytest.mark.parametrize("slot", [RANKS, DEALT], ids=["packed", "dealt"])
@pytest.mark.parametrize("layout", [Layout(tp=8, pp=2), Layout(tp=2, cp=2, dp=8, ep=4), Layout(dp=32)])
def test_layouts_are_valid(slot: Ints, layout: Layout) -> None:
    assert valid(audit(CLUSTER, talk_of_layout(CLUSTER, layout, 32), Assignment(slot)))["step_ms"]


def test_a_job_of_unknown_compute_has_no_step() -> None:
    talk = talk_of_groups(CLUSTER, (Demand("a", np.asarray([[0, 1], [2, 3]]), keep_together=True),), 4)
    assert valid(audit(CLUSTER, talk, Assignment(DEALT[:4])))["step_ms"] is None


def test_a_job_that_says_nothing_is_valid() -> None:
    document = valid(audit(CLUSTER, Talk(2, ()), Assignment(RANKS[:2])))
    shown = (document["cost"], document["worst"], document["worst_exchange"], document["gain_percent"])
    assert shown == ({}, None, None, 0.0)
