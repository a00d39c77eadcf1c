"""The corpus of NCCL's own answers: topology files with what NCCL decided on them, and jobs with their logs."""

import gzip
import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from topodiag.evidence.nccl_xml import read_file
from topodiag.model.nccl_tree import NcclFile

CORPUS = Path(__file__).resolve().parents[3] / "shared" / "corpus"
TOPOLOGIES = sorted(path.stem for path in (CORPUS / "topo").glob("*.xml"))
JOBS = CORPUS / "jobs"
JOB_NAMES = sorted(path.parent.name for path in JOBS.glob("*/truth.json"))
ABSENT = f"the corpus is not at {CORPUS}: nothing was compared"

BARE = "Could not find any local path from gpu 0 to net."
"""What NCCL 2.29 and 2.30 print for such a file. A communicator adds the NICs of its plugin, at least the one of
sockets, and starts."""


def is_bare(truth: Mapping[str, Any]) -> bool:
    """Whether NCCL, given a file alone, refused it for want of the NICs that a communicator adds."""
    return set(truth.get("warn") or ()) == {BARE}


@cache
def topology(name: str) -> NcclFile:
    path = CORPUS / "topo" / f"{name}.xml"
    return read_file(path.read_bytes(), path.name)


@cache
def truth_of(name: str) -> dict[str, dict[str, dict[str, Any]]]:
    """By version and number of nodes what NCCL decided on a topology file."""
    with gzip.open(CORPUS / "topo" / f"{name}.truth.json.gz") as stream:
        truth: dict[str, dict[str, dict[str, Any]]] = json.load(stream)
    return truth
