"""YAML as plain values, assignments in any text, and files of /sys and /proc as a shell shows them."""

import time

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from tests.evidence.filled import node_of
from tests.tables import examples
from topodiag.evidence.assignments import assigned, commanded_in, stated_in
from topodiag.evidence.interface import Blob
from topodiag.evidence.pasted_files import shown_files
from topodiag.evidence.yaml_values import FREE_VALUES, load_yaml
from topodiag.model.errors import InputError
from topodiag.model.provenance import Topic


def loaded(text: str) -> object:
    return load_yaml(Blob("groups.yaml", text.encode()))


def refused(text: str) -> str:
    with pytest.raises(InputError) as caught:
        loaded(text)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_words_numbers_lists_and_mappings_are_plain_values() -> None:
    text = "a: [1, -2, 0.5, .5, 1e3, yes, No, ~, 4-7, '8']\nb:\n  - c: >\n      long\n      text\n    'd e': {f: }\n"
    assert loaded(text) == {
        "a": [1, -2, 0.5, 0.5, "1e3", True, False, None, "4-7", "8"], "b": [{"c": "long text\n", "d e": {"f": None}}],
    }  # fmt: skip


def test_an_alias_stands_for_its_value_and_a_merge_key_for_its_members() -> None:
    text = "- &a {x: 1, y: &l [1, 2]}\n- {<<: *a, y: 3}\n- {y: *l, <<: [*a, {z: 4, x: 9}]}\n"
    assert loaded(text) == [{"x": 1, "y": [1, 2]}, {"x": 1, "y": 3}, {"x": 1, "z": 4, "y": [1, 2]}]


SCALARS = st.none() | st.booleans() | st.integers(-(10**18), 10**18) | st.text()


def test_a_value_that_looks_like_a_format_string_is_a_value() -> None:
    assert loaded("path: logs of %s\n") == {"path": "logs of %s"}


@given(st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=20))
def test_what_yaml_writes_is_read_as_it_was(value: object) -> None:
    text = yaml.safe_dump(value, allow_unicode=False)
    if "<<" not in text:
        assert loaded(text) == value


@pytest.mark.parametrize("times", [10, 1_000])
def test_aliases_that_make_much_of_little_are_refused(times: int) -> None:
    levels = "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * times)}]\n" for n in range(1, 9))
    assert "repeats itself by aliases" in refused(f"a0: &a0 [1, 2]\n{levels}")


def test_merge_keys_that_make_much_of_little_are_refused() -> None:
    levels = "".join(f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 9)}]}}\n" for n in range(1, 40))
    assert "repeats itself by aliases" in refused(f"a0: &a0 {{x: 1}}\n{levels}")


def test_an_alias_inside_of_what_it_names_is_refused() -> None:
    assert "'a'" in refused("a: &a [1, *a]\n")
    assert "'a'" in refused("- &a [1]\n- &a {x: *a}\n")


def test_a_file_that_repeats_a_long_list_a_few_times_is_read() -> None:
    members = ", ".join(map(str, range(FREE_VALUES)))
    made = loaded(f"a: &a [{members}]\nb: [*a, *a, *a]\n")
    assert isinstance(made, dict)
    assert len(made["b"]) == 3


@pytest.mark.parametrize(
    "number",
    ["9" * 5000, "-" + "9" * 5000, "0x" + "f" * 5000, "0b" + "1" * 20_000, ":59" * 5000, "1." + "9" * 5000, "1e999"],
)
def test_a_number_of_thousands_of_digits_is_a_word(number: str) -> None:
    assert loaded(f"a: {number}\n") == {"a": number}


def test_a_number_of_thousands_of_digits_in_json_is_no_number() -> None:
    assert loaded(f'{{"a": {"9" * 5000}, "b": 1e999, "c": NaN}}') == {"a": None, "b": None, "c": None}


@examples("text", "says")
def test_what_is_not_plain_is_one_clear_line(text: str, says: str) -> None:
    assert says in refused(text)


# --- what commands, traces and descriptions of jobs set, in each of the forms that people write


@examples("line", "found")
def test_a_line_sets_what_it_names(line: str, found: list[tuple[str, str]]) -> None:
    assert list(assigned(line)) == found


def test_kubernetes_writes_name_and_value_in_two_lines() -> None:
    assert list(assigned('  value: "1"', "- name: NCCL_IB_DISABLE")) == [("NCCL_IB_DISABLE", "1")]
    assert not list(assigned('  value: "1"', "- name: trainer"))


@examples("line", "found")
def test_of_a_jobs_output_only_commands_and_dumps_set_something(
    line: str, found: tuple[str, list[tuple[str, ...]]] | None
) -> None:
    assert stated_in(line) == found


@examples("line")
def test_a_line_of_a_benchmark_that_prints_or_advises_sets_nothing(line: str) -> None:
    assert not list(commanded_in(line))


@examples("line")
def test_commands_of_any_form_above_a_table_count(line: str) -> None:
    assert list(commanded_in(line)) == [("NCCL_NET", "Socket")]


def test_a_pair_of_kubernetes_in_a_file_sets_what_it_names() -> None:
    assert stated_in('      value: "Socket"', "    - name: NCCL_NET") == ("", [("NCCL_NET", "Socket")])
    assert stated_in('      value: "Socket"', "    - name: trainer") is None


# --- files of /sys and /proc as a shell shows them are read as the captured files are


PORT = "/sys/class/infiniband/mlx5_0/ports/1"


def shown(text: str) -> list[tuple[str, str, str]]:
    return [shown[1:] for shown in shown_files(text)]


def test_what_follows_the_next_prompt_is_not_of_the_file() -> None:
    text = "$ cat /sys/class/net/ib0/mtu\n4092\n$ uptime\n 10:11:12 up 3 days\n"
    assert shown(text) == [("=", "sys/class/net/ib0/mtu", "4092")]


def test_a_folder_and_a_star_leave_two_slashes() -> None:
    counter = "sys/class/infiniband/rocep3s0f1/ports/1/hw_counters/local_ack_timeout_err"
    assert shown(f"/{counter.replace('counters/', 'counters//')}:17\n") == [("=", counter, "17")]
    assert shown("/sys/class/infiniband/rocep3s0f1/ports/1/hw_counters/\n") == []


def test_cat_of_several_files_is_not_told_apart() -> None:
    assert shown("$ cat /sys/class/net/ib0/mtu /sys/class/net/ib1/mtu\n4092\n2044\n") == []


def test_a_paste_is_a_part_so_what_it_does_not_show_may_be_there() -> None:
    node = node_of(f"{PORT}/counters/port_rcv_errors:3\n")
    assert not node.topics & {Topic.RDMA_DEVICES, Topic.GPUS, Topic.OS}


@examples("text")
def test_a_mention_of_a_file_shows_nothing(text: str) -> None:
    assert shown(text) == []


@pytest.mark.parametrize(
    "line", ["/sys/" + "a/" * 2000, "cat /sys/a" * 400, "/sys/x" * 600, "$ ls /proc/" + " " * 4000]
)
def test_long_lines_cost_little_time(line: str) -> None:
    start = time.process_time()
    list(shown_files(f"{line}\n" * 20))
    assert time.process_time() - start < 1.0


def test_a_long_name_that_is_none_costs_no_time() -> None:
    line = "roce" * 15 + "²"
    began = time.process_time()
    assert not list(shown_files(f"$ ls /sys/class/infiniband\n{line}\n"))
    assert time.process_time() - began < 1
