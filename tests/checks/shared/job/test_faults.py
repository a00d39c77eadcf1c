"""The words for faults that a job's lines name, and who may find each."""

import pytest

from topodiag.checks.registry import Subject, check_of, ids_of
from topodiag.checks.shared.job.faults import FaultInLog, NamedFault, named_faults

OF_CHECKS = {check.id for check in (check_of(Subject.JOB, name) for name in ids_of(Subject.JOB))
             if issubclass(check, FaultInLog)}  # fmt: skip


def test_each_entry_is_of_a_check_and_each_check_has_an_entry() -> None:
    assert {entry.check for entry in named_faults().values()} == OF_CHECKS


@pytest.mark.parametrize("entry", named_faults().values(), ids=lambda entry: f"{entry.check} {entry.fault}")
def test_an_entry_says_what_is_wrong_and_what_to_do(entry: NamedFault) -> None:
    assert entry.message[0].islower() or entry.message.startswith("CUDA")
    assert not any(text.endswith(".") for text in (entry.message, entry.expected, entry.cost, *entry.fix))
    assert entry.fix
    assert all(len(step) < 400 and "  " not in step for step in entry.fix)
