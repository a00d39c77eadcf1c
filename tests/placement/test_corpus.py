"""Jobs of the corpus, solved from their logs: the emitted map, set against what the corpus knows of the job."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from topodiag.app.case.placement import PlaceOptions, open_placement
from topodiag.emit.place_formats import write
from topodiag.evidence.interface import Blob
from topodiag.evidence.layout.rank_files import read_slurm_hostfile
from topodiag.model.cluster import map_of
from topodiag.placement.job_groups import talk_of_job
from topodiag.placement.seats import assign
from topodiag.placement.solve import solve

JOBS = Path(__file__).parents[3] / "shared" / "corpus" / "jobs"


def tensor_groups(truth: dict[str, Any]) -> list[list[int]]:
    return [
        communicator["ranks"] for communicator in truth["communicators"] if str(communicator["name"]).startswith("TP")
    ]


@pytest.mark.parametrize("name", ["g_tp8_scatter", "g_tp8_packed"])
def test_the_emitted_map_splits_no_tensor_group_of_the_truth(name: str) -> None:
    if not (JOBS / name).is_dir():
        pytest.skip(f"no corpus at {JOBS}")
    opened = open_placement(PlaceOptions(logs=(str(JOBS / name),)))
    assert opened.read.job is not None
    talk = talk_of_job(opened.cluster, opened.read.job)
    solution = solve(opened.cluster, talk.demands, talk.world)
    text = write(map_of(opened.cluster, solution.assignment), "slurm-hostfile").text
    again = assign(opened.cluster, read_slurm_hostfile(Blob("hosts", text.encode())))
    node = opened.cluster.node_of(again.slot)
    groups = tensor_groups(json.loads((JOBS / name / "truth.json").read_text()))
    assert groups
    assert all(np.unique(node[group]).size == 1 for group in groups)
