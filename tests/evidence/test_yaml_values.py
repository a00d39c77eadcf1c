"""YAML as plain values: what files of sites hold, and nothing that grows beyond what is written."""

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from tests.tables import examples
from topodiag.evidence.interface import Blob
from topodiag.evidence.yaml_values import FREE_VALUES, load_yaml
from topodiag.model.errors import InputError


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
