"""ENV002: lines of nccl.conf that NCCL takes literally."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.checks.nodes import only, status
from tests.checks.wanted import expect
from tests.tables import examples
from topodiag.checks.env.conf_file import ConfLineNotRead, misread
from topodiag.evidence.host.settings import as_nccl_reads
from topodiag.model.node import Node
from topodiag.model.provenance import Origin, Topic
from topodiag.model.system import ConfLine


def conf(*lines: str, path: str = "etc/nccl.conf") -> Node:
    conf_lines = (ConfLine(path, at + 1, text, Origin("settings.tree", at + 1, text)) for at, text in enumerate(lines))
    return Node("gpu-001", conf_lines=tuple(conf_lines), topics=frozenset({Topic.SETTINGS}))


def judge(node: Node) -> Any:
    return ConfLineNotRead().judge(node, ())


@examples("line", "what", "meant")
def test_what_nccl_takes_literally_is_told_with_what_was_meant(line: str, what: str, meant: str) -> None:
    finding = expect(judge(conf(line)), message="etc/nccl.conf line 1: *", severity="WARNING")
    assert what in finding.message
    assert finding.evidence[0].line == 1
    if meant:
        assert finding.expected == meant
        assert meant in finding.fix[0]


def test_a_line_that_is_longer_than_nccl_reads_is_told() -> None:
    assert "longer than" in only(judge(conf("NCCL_ALGO=" + "x" * 1024))).message


@examples("line")
def test_what_nccl_reads_as_meant_is_silent(line: str) -> None:
    assert status(judge(conf(line))) == "clean"


def test_a_second_value_for_a_name_is_not_in_force() -> None:
    finding = only(judge(conf("NCCL_DEBUG=INFO", "NCCL_DEBUG=WARN", "NCCL_DEBUG=INFO")))
    assert finding.message == "etc/nccl.conf line 2: NCCL_DEBUG is set further up already, and the first line counts"


def test_the_same_name_in_another_file_is_another_matter() -> None:
    one, other = conf("NCCL_DEBUG=INFO"), conf("NCCL_DEBUG=WARN", path="home/a/.nccl.conf")
    both = Node("gpu-001", conf_lines=one.conf_lines + other.conf_lines)
    assert status(judge(both)) == "clean"


def test_no_file_is_not_applicable_and_no_look_is_unknown() -> None:
    assert status(judge(conf())) == "not_applicable"
    assert status(judge(Node("gpu-001"))) == "unknown"


@given(
    st.sampled_from(["", " ", "export ", "\t", "set "]),
    st.sampled_from(["NCCL_IB_HCA", "NCCL_DEBUG", "NCCL_TOPO_FILE"]),
    st.text(alphabet="=mlx5_0,^:# \t'\"~/", max_size=12),
    st.sampled_from(["", " ", "\r"]),
)
def test_a_line_written_as_advised_is_read_as_meant(before: str, name: str, value: str, after: str) -> None:
    wrong = misread(f"{before}{name}={value}{after}")
    if wrong is not None and wrong[1]:
        assert misread(wrong[1]) is None
        read = as_nccl_reads(wrong[1])
        assert read[0] == name
