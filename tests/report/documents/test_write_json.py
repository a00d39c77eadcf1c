"""Documents are written as strict JSON in ASCII, whatever numbers and texts are in them."""

import io
import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from topodiag.report.documents.write_json import plain, write_json


def written(document: dict[str, Any]) -> str:
    stream = io.StringIO()
    write_json(document, stream)
    return stream.getvalue()


@given(st.text(), st.floats())
def test_any_text_and_number_give_strict_json_in_ascii(text: str, value: float) -> None:
    content = written({"text": text, "value": {"deep": [value]}, "pair": (value, 1.0)})
    assert content.isascii()

    def refuse(name: str) -> None:
        raise AssertionError(name)

    assert json.loads(content, parse_constant=refuse)["text"] == text


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf"), np.float64("nan")])
def test_what_json_has_no_word_for_is_null(value: float) -> None:
    assert plain({"text": "", "value": value, "pair": (value, 2.0)}) == {"text": "", "value": None, "pair": [None, 2.0]}


def test_numbers_of_numpy_are_numbers() -> None:
    document = plain({"text": "", "value": [np.int64(3), np.float64(0.5), np.bool_(True)]})
    assert document["value"] == [3, 0.5, True]
    assert [type(each) for each in document["value"]] == [int, float, bool]


def test_numbers_are_spelt_as_python_spells_them() -> None:
    assert '"value": 1e-05' in written({"text": "", "value": 1e-05})
