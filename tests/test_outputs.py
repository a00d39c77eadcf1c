"""What people paste when they ask, some lines of one tool without anything around them: the fault that stands there
comes first, and the same words where nothing is wrong accuse nobody.

The texts are rows of `tests/outputs/*.toml`, one file a subject, each under its claim. A row has a `text`, or is one of
the file's `[texts]` filled `with` values, and says what the answer has; one that says nothing accuses nobody.
"""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.pasted import said
from topodiag.api import diagnose
from topodiag.model.errors import TopodiagError

FILES = sorted((Path(__file__).parent / "outputs").glob("*.toml"))
UNREAD: dict[str, Any] = {"findings": [], "verdict": {"state": "unknown"}, "unexplained": []}
"""The answer on a text of no kind that is known: it accuses nobody, and calls nothing healthy."""
CLAIMS = {"first", "severity", "message", "fix", "findings", "loud", "among", "without", "state", "unexplained"}
"""What a row can say of the answer. Of the first finding: its id, that it is a note (`severity` is `info`), words of
its message, the first steps of its fix. Of all: their ids, those of errors and warnings, some that must be or must not
be among them. Of the verdict: its state; and the lines, or how many, that nothing explains."""


def rows() -> dict[str, dict[str, Any]]:
    """The rows of all files by subject and claim, each with its text."""
    table = {}
    for path in FILES:
        sections = tomllib.loads(path.read_text(encoding="utf-8"))
        forms = sections.pop("texts", {})
        for claim, row in sections.items():
            if "of" in row:
                values = row.pop("with")
                form = forms[row.pop("of")]
                row["text"] = form.format(**values) if isinstance(values, dict) else form.format(*values)
            assert row.keys() <= CLAIMS | {"text"}, f"{path.stem}: {claim}"
            table[f"{path.stem}: {claim}"] = row
    return table


ROWS = rows()


@pytest.mark.parametrize("name", ROWS)
def test_an_output_gives_what_its_row_says(tmp_path: Path, name: str) -> None:
    row = dict(ROWS[name])
    try:
        answer = said(tmp_path, row.pop("text"))
    except TopodiagError:
        answer = UNREAD
    findings = answer["findings"]
    ids = [finding["id"] for finding in findings]
    loud = [finding["id"] for finding in findings if finding["severity"] != "info"]
    unexplained = [trouble["text"] for trouble in answer["unexplained"]]
    if "first" in row:
        assert ids[:1] == [row["first"]]
        assert findings[0]["evidence"]
        assert (findings[0]["severity"] == "info") is ("severity" in row)
        assert answer["verdict"]["state"] != "healthy"
    assert [words for words in row.get("message", ()) if words not in findings[0]["message"]] == []
    assert "fix" not in row or findings[0]["fix"][: len(row["fix"])] == row["fix"]
    assert ids == row.get("findings", ids)
    assert loud == row.get("loud", loud if row else [])
    assert set(row.get("among", ())) <= set(ids)
    assert not set(row.get("without", ())) & set(ids)
    assert answer["verdict"]["state"] == row.get("state", answer["verdict"]["state"])
    assert row.get("unexplained", unexplained) in (unexplained, len(unexplained))


ACS = "$ sudo lspci -vvv | grep ACSCtl\n" + 8 * (
    "\t\tACSCtl:\tSrcValid+ TransBlk- ReqRedir{0} CmpltRedir{0} UpstreamFwd{0} EgressCtrl- DirectTrans-\n"
)
REPLY = (
    "n1:7:9 [0] NCCL INFO Channel 00 : 8 -> 0 [receive] via NET/IB/0/GDRDMA\n"
    "n1:7:9 [0] transport/net_ib.cc:788 NCCL WARN NET/IB : Got completion with error 4, opcode 1, len 21938, vendor err"
    " 81\n"
)
MODULES = "$ lsmod | grep -E 'nvidia_peermem|nv_peer_mem'\n{}$\n"
NCCL = """n1:7:7 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB ; OOB eth0:10.0.1.2<0>
NCCL version {}
"""


def ids_of(folder: Path, output: str, log: str) -> list[str]:
    """The findings of a job's log and one tool's output beside it."""
    (folder / "output.txt").write_text(output)
    (folder / "job.log").write_text(log)
    return [finding["id"] for finding in json.loads(diagnose(str(folder)).to_json())["findings"]]


@pytest.mark.parametrize(
    ("output", "first"),
    [
        pytest.param(ACS.format("+"), "PCI004", id="of no host, which may be any of the job"),
        pytest.param(ACS.format("-"), "NET008", id="of no host, and in order"),
        pytest.param("[root@n9 ~]# hostname\n" + ACS.format("+"), "NET008", id="of another host than the job has"),
    ],
)
def test_an_output_counts_for_a_job_unless_it_names_another_host(tmp_path: Path, output: str, first: str) -> None:
    assert ids_of(tmp_path, output, REPLY)[:1] == [first]


@pytest.mark.parametrize(
    ("version", "modules", "wrong"),
    [
        ("2.12.9+cuda11.6", "", True),
        ("2.18.3+cuda12.1", "", False),  # DMA-BUF may do it
        ("2.12.9+cuda11.6", "nvidia_peermem 16384 0\n", False),
    ],
)
def test_a_node_without_the_module_lacks_gpudirect_where_nccl_has_no_other_way(
    tmp_path: Path, version: str, modules: str, wrong: bool
) -> None:
    assert ("GDR001" in ids_of(tmp_path, MODULES.format(modules), NCCL.format(version))) is wrong
