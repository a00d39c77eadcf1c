"""The words for faults that a job's lines name, and who may find each."""

import pytest

from topodiag.checks.registry import Subject, check_of, ids_of
from topodiag.checks.shared.job.faults import FaultInLog, named_faults

OF_CHECKS = {check.id for check in (check_of(Subject.JOB, name) for name in ids_of(Subject.JOB))
             if issubclass(check, FaultInLog)}  # fmt: skip


def test_each_entry_is_of_a_check_and_each_check_has_an_entry() -> None:
    assert {check for check, _ in named_faults()} == OF_CHECKS


@pytest.mark.parametrize("named", named_faults(), ids=" ".join)
def test_an_entry_says_what_is_wrong_and_what_to_do(named: tuple[str, str]) -> None:
    message, advice = named_faults()[named]
    assert message[0].islower() or message.startswith("CUDA")
    assert not any(text.endswith(".") for text in (message, advice.expected, advice.cost.text, *advice.fix))
    assert advice.fix
    assert all(len(step) < 400 and "  " not in step for step in advice.fix)
