"""The catalogue of Xid and SXid errors: every number has a meaning, a side and an action, and lines are decoded."""

import pytest

from tests.tables import examples
from topodiag.hardware import xids

FAMILIES = {
    "lost", "memory", "nvlink", "firmware", "pcie", "link", "power", "program", "recovery", "note",
}  # fmt: skip


@pytest.mark.parametrize("entry", xids._xids().values(), ids=lambda entry: str(entry.code))
def test_an_entry_of_the_catalogue_is_complete(entry: xids.Xid) -> None:
    assert entry.family in FAMILIES
    assert entry.severity in {"error", "warning", "info", "by-text"}
    assert entry.side in {"hardware", "driver", "program", "either"}
    assert entry.actions
    assert entry.means[0].islower() or entry.means.split()[0].isupper()


@examples("code", "family")
def test_the_numbers_that_the_checks_name_are_in_their_families(code: int, family: str) -> None:
    xid = xids.xid(code)
    assert xid.family == family


@pytest.mark.parametrize("code", [13, 31, 43, 45])
def test_what_a_program_causes_is_no_more_than_info(code: int) -> None:
    xid = xids.xid(code)
    assert xid.severity == "info"


@examples("code", "text", "unit", "link", "severity")
def test_nvlink_errors_of_blackwell_are_decoded_by_unit_and_status_word(
    code: int, text: str, unit: str, link: int | None, severity: str
) -> None:
    error = xids.nvlink_of(code, text)
    assert (error.unit, error.link, error.severity) == (unit, link, severity)


def test_the_word_of_an_sxid_line_wins_over_the_catalogue() -> None:
    assert xids.sxid_severity(20034, "20034, Non-fatal, Link 30 LTSSM Fault Up") == "warning"
    assert xids.sxid_severity(20034, "20034, Link 30 LTSSM Fault Up") == "error"
    assert xids.sxid_severity(11012, "11012, Non-fatal, Link 3") == "info"
    assert xids.sxid_severity(99999, "99999, Fatal") == "error"


def test_the_recovery_action_of_xid_154_is_read() -> None:
    line = "154, GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)"
    assert xids.recovery_of(line) == ("none", "gpu reset required")
