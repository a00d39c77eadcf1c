"""Files that declare the sizes of a job's parallel dimensions."""

from __future__ import annotations

import pytest

from topodiag.evidence.intake.kinds import Kind
from topodiag.evidence.intake.looks import looks
from topodiag.evidence.interface import Blob
from topodiag.evidence.layout.sizes_file import read_sizes
from topodiag.model.errors import InputError

TEXTS = {
    "yaml": "tp: 8\npp: 1\ndp: 2\norder: tp-cp-ep-dp-pp\n",
    "json": '{\n  "tp": 8,\n  "pp": 1,\n  "dp": 2\n}\n',
    "one line": '{"tp": 8, "pp": 1, "dp": 2}',
    "megatron": "# of the run\ntensor-model-parallel-size: 8\npipeline_model_parallel_size: 1\ndata_parallel_size: 2\n",
    "world": "world_size: 16\ntp: 8\npp: 1\n",
}


@pytest.mark.parametrize("form", TEXTS)
def test_every_form_is_recognised_and_read(form: str) -> None:
    assert looks(TEXTS[form].encode()).kinds == (Kind.SIZES,)
    made = read_sizes(Blob("layout.yaml", TEXTS[form].encode()))
    assert (made.tp, made.pp, made.dp) == (8, 1, 2)


TEXTS_OF_OTHERS = ["tp: 8\n", "name: x\nversion: 2\n", "tp: 8\nimage: a/b:c\n", "order: tp-pp\nworld_size: 8\n"]


@pytest.mark.parametrize("text", TEXTS_OF_OTHERS)
def test_a_file_of_other_words_declares_no_sizes(text: str) -> None:
    assert Kind.SIZES not in looks(text.encode()).kinds


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("tp: 0\npp: 1\n", "tp is 0"),
        ("tp: x\npp: 1\n", "tp is x"),
        ("tp: 8\ntensor_parallel_size: 4\n", "says tp twice, 8 and 4"),
        ("tp: 3\npp: 1\nworld_size: 16\n", "does not divide the ranks"),
        ("tp: 8\npp: 2\norder: tp-tp\n", "does not name each dimension"),
        ("[1, 2]\n", "declares no sizes"),
    ],
)
def test_sizes_that_make_no_layout_are_refused_in_one_line(text: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        read_sizes(Blob("layout.yaml", text.encode()))
