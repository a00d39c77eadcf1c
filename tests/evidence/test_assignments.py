"""What commands, traces and descriptions of jobs set, in each of the forms that people write."""

from tests.tables import examples
from topodiag.evidence.assignments import Scope, assigned, commanded_in, stated_in


@examples("line", "found")
def test_a_line_sets_what_it_names(line: str, found: list[tuple[str, str]]) -> None:
    assert list(assigned(line)) == found


def test_kubernetes_writes_name_and_value_in_two_lines() -> None:
    assert list(assigned('  value: "1"', "- name: NCCL_IB_DISABLE")) == [("NCCL_IB_DISABLE", "1")]
    assert not list(assigned('  value: "1"', "- name: trainer"))


@examples("line", "found")
def test_of_a_jobs_output_only_commands_and_dumps_set_something(
    line: str, found: tuple[Scope, str, list[tuple[str, ...]]] | None
) -> None:
    assert stated_in(line) == found


@examples("line")
def test_a_line_of_a_benchmark_that_prints_or_advises_sets_nothing(line: str) -> None:
    assert not list(commanded_in(line))


@examples("line")
def test_commands_of_any_form_above_a_table_count(line: str) -> None:
    assert list(commanded_in(line)) == [("NCCL_NET", "Socket")]


def test_a_pair_of_kubernetes_in_a_file_sets_what_it_names() -> None:
    assert stated_in('      value: "Socket"', "    - name: NCCL_NET") == (Scope.DUMP, "", [("NCCL_NET", "Socket")])
    assert stated_in('      value: "Socket"', "    - name: trainer") is None
