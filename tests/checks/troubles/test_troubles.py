"""Lines of trouble that no finding explains, of jobs and of nodes: listed, and never beside no faults."""

import json
from functools import partial
from pathlib import Path

from tests.checks import jobs
from tests.evidence.filled import node_of
from tests.printed import drawn, written
from tests.tables import examples, texts
from topodiag.app.case.jobs import LogOptions
from topodiag.app.logs import logs
from topodiag.app.scan import scan
from topodiag.checks.troubles.job import troubles, why_harmless
from topodiag.checks.troubles.node import troubles as troubles_of_nodes
from topodiag.model.result import Result
from topodiag.report.formats import json as as_json
from topodiag.report.formats import nagios, prometheus
from topodiag.report.formats.nagios import State, state_of
from topodiag.report.job.table import draw_logs
from topodiag.report.table import draw_result

HEAD = "n0:310:351 [0] NCCL INFO"
WARN = "n0:310:351 [0] enqueue.cc:412 NCCL WARN"
STRANGE = "Set CPU affinity : unable to find GPU/CPU for rank 0"
OPENED = "Failed to open libibverbs.so[.1]"


def judged(tmp_path: Path, *lines: str) -> Result:
    path = tmp_path / "job.log"
    path.write_text("".join(f"{line}\n" for line in (f"{HEAD} NCCL version 2.21.5+cuda12.4", *lines)))
    return logs([str(path)], options=LogOptions(workers=1))


def test_a_warning_that_no_rule_explains_is_listed(tmp_path: Path) -> None:
    result = judged(tmp_path, f"{WARN} {STRANGE}")
    assert [(each.what, each.text, each.harmless) for each in result.unexplained] == [("NCCL WARN", STRANGE, "")]
    text = drawn(draw_logs, result, width=200)
    assert "1 line of trouble that no check explains (NCCL WARN)" in text
    assert STRANGE in text
    assert "job.log:2" in text


def test_no_faults_found_never_stands_beside_a_warning(tmp_path: Path) -> None:
    assert "no faults found" not in drawn(draw_logs, judged(tmp_path, f"{WARN} {STRANGE}"), width=200).lower()


def test_lines_that_differ_in_numbers_only_are_one_with_their_count(tmp_path: Path) -> None:
    result = judged(tmp_path, f"{WARN} {STRANGE}", f"{WARN} Set CPU affinity : unable to find GPU/CPU for rank 7")
    assert [each.count for each in result.unexplained] == [2]


def test_a_harmless_warning_is_named_with_its_reason_and_leaves_the_verdict_alone(tmp_path: Path) -> None:
    result = judged(tmp_path, f"{WARN} {OPENED}")
    assert [each.text for each in result.unexplained] == [OPENED]
    assert "RDMA library is not installed" in result.unexplained[0].harmless
    assert not result.troubles()
    text = drawn(draw_logs, result, width=200)
    assert "known to be harmless" in text
    assert "no check explains" not in text


def test_every_output_has_the_line(tmp_path: Path) -> None:
    result = judged(tmp_path, f"{WARN} {STRANGE}")
    assert [each["text"] for each in json.loads(written(as_json.write, result))["unexplained"]] == [STRANGE]
    assert "topodiag_unexplained 1.0" in written(partial(prometheus.write, clock=lambda: 0.0), result)
    assert STRANGE in written(nagios.write, result)
    assert state_of(result) is State.UNKNOWN


def test_nothing_said_is_nothing_listed() -> None:
    assert troubles((), ()) == ()


@examples("text")
def test_a_call_that_failed_is_no_missing_symbol(text: str) -> None:
    assert not why_harmless(jobs.event("other", text), jobs.job())


@examples("text")
def test_an_optional_symbol_that_the_library_has_not_is_harmless(text: str) -> None:
    assert why_harmless(jobs.event("other", text), jobs.job())


# --- what the evidence of a node says that is wrong, and no check judges: "no faults found" never stands beside it


GIDS = "DEV     PORT    INDEX   GID                                     IPv4            VER     DEV\n"


@examples("gid", "told")
def test_a_roce_port_with_link_local_gids_alone_is_told(gid: str, told: bool) -> None:
    node = node_of(f"{GIDS}mlx5_0  1       0       {gid}\n")
    assert [each.what for each in troubles_of_nodes([node], ())] == (["RoCE port without an address"] if told else [])


def scanned_text(text: str, folder: Path) -> Result:
    (folder / "dmesg.txt").write_text(text)
    return scan([str(folder / "dmesg.txt")])


TEXTS = texts(__file__)
P2P = TEXTS["p2p"]


def test_a_peer_to_peer_table_alone_is_judged_and_drawn(tmp_path: Path) -> None:
    result = scanned_text(P2P, tmp_path)
    (trouble,) = result.troubles()
    assert "2 of 3 pairs" in trouble.text
    assert "CNS" in trouble.text
    page = drawn(draw_result, result, width=100)
    assert "refused by the chipset" in " ".join(page.split())
    assert "no faults found" not in page
