"""What a line of any tool says of a fault, asked in all ways at once."""

from __future__ import annotations

import pytest

from topodiag.evidence.host.told import told_of


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("  ReadonlyFilesystem   True    FilesystemIsReadOnly      Filesystem is read-only", "storage"),
        ("  ReadonlyFilesystem   False   FilesystemIsNotReadOnly   Filesystem is not read-only", ""),
        ("  NvlinkDown           False   NvlinkIsUp                all NVLinks are up, none is down", ""),
        ("storage: mount /scratch timed out after 30s", "storage"),
    ],
)
def test_a_condition_that_is_not_met_is_no_fault(line: str, fault: str) -> None:
    told = told_of(line)
    assert (told.fault if told is not None else "") == fault
