"""Predicted against measured: the proof where they agree, what is left where they do not."""

from typing import Any

import pytest

from tests.tables import examples
from tests.verdict.pricing.machines import run
from topodiag.model.verdict import Agreement
from topodiag.verdict.pricing.agreement import as_another_algorithm, compare, measured_of, same_as_table


@examples("whole", "predicted", "measured", "wanted")
def test_within_15_percent_they_agree(whole: float, predicted: float, measured: float, wanted: Agreement) -> None:
    compared = compare(whole, predicted, measured, "the cause")
    assert compared.agreement is wanted, compared.says
    assert f"measured {measured:.0f}" in compared.says.replace(".0", "")


@examples("figures", "cause", "bound", "agreement", "begins", "ends")
def test_how_a_prediction_and_a_measurement_are_compared(
    *,
    figures: tuple[float, float, float],
    cause: str | None,
    bound: list[Any] | None,
    agreement: Agreement | None,
    begins: str | None,
    ends: str | None,
) -> None:
    """The whole, the prediction and the measurement in GB/s. A prediction may be an upper bound: by the part of it that
    is reached at least, and by what NCCL's model leaves out."""
    compared = compare(*figures, cause or "the cause", *(bound or ()))
    assert agreement is None or compared.agreement is agreement
    assert compared.says.startswith(begins or "")
    assert compared.says.endswith(ends or "")


REACHED = {"Tree": 68.2, "Ring": 49.6, "NVLS": 20.0}


def test_what_another_algorithm_reaches_is_said_where_the_prediction_misses() -> None:
    assert as_another_algorithm(68.2, 47.3, "Tree", REACHED) == (
        "Ring reaches 49.6 GB/s on these machines, where NCCL's model takes Tree: NCCL_DEBUG_SUBSYS=TUNING shows which"
        " one ran"
    )


@pytest.mark.parametrize("measured", [66.0, 60.0, 30.0, 90.0])
def test_a_measurement_that_agrees_or_fits_no_algorithm_asks_for_none(measured: float) -> None:
    assert as_another_algorithm(68.2, measured, "Tree", REACHED) == ""


def test_a_job_that_nobody_measured_is_not_measured() -> None:
    assert measured_of(run("n1"), "busbw") is None
    quantity = measured_of(run("n1", "n2", gbs=285.6), "busbw")
    assert (quantity.value, quantity.source) == (285.6, "nccl-tests at 16 GiB on 2 nodes, run.txt")


def test_nccls_own_table_in_the_log_confirms_or_denies() -> None:
    table = {("AllReduce", "NVLS_TREE", "SIMPLE"): (66.8, 215.4), ("AllReduce", "RING", "SIMPLE"): (131.6, 0.0)}
    same = same_as_table(403.6, "NVLSTree/Simple", table, "AllReduce", 1.875)
    assert same == "NCCL's own table in the log says the same: 403.9 GB/s of NVLSTree/Simple"
    assert "461.2 are modelled" in same_as_table(461.2, "NVLSTree/Simple", table, "AllReduce", 1.875)
    assert not same_as_table(1.0, "Ring/Simple", table, "AllReduce", 1.875)
