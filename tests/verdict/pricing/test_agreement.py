"""Predicted against measured: the proof where they agree, what is left where they do not."""

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


def test_the_sentence_has_the_numbers() -> None:
    text = compare(477, 297, 286, "the cause").says
    assert text == "the cause explains 94 % of the loss (predicted 297 GB/s of 477, measured 286, -3.7 %)"


def test_what_is_left_is_said() -> None:
    assert compare(477, 297, 180, "these 2 causes").says.startswith(
        "these 2 causes explain 61 % of the loss, 117 GB/s stay unexplained ("
    )


def test_a_figure_that_is_an_upper_bound_agrees_with_what_lies_below_it() -> None:
    assert compare(476, 246, 128, "the cause", least=0.3).agreement is Agreement.AGREES
    assert compare(476, 246, 60, "the cause", least=0.3).agreement is Agreement.PART


def test_an_upper_bound_says_what_nccl_does_not_reckon() -> None:
    compared = compare(475.4, 21.3, 9.1, "the cause", 0.1, "the costs of TCP")
    assert compared.agreement is Agreement.AGREES
    assert compared.says.endswith("; expect 2.1 to 21.3 GB/s: NCCL's model leaves out the costs of TCP")


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


def test_what_a_great_loss_leaves_is_compared_as_well_as_the_loss() -> None:
    text = compare(477, 68.2, 47.3, "the cause").says
    numbers = "predicted 68.2 GB/s of 477, measured 47.3, -31 %, losses 86 % and 90 %"
    assert text == f"the cause explains 95 % of the loss ({numbers})"
    text = compare(475, 21.3, 9.1, "the cause").says
    assert text.startswith("the cause explains the loss, 12.2 GB/s stay unexplained (")


def test_a_cause_never_explains_more_than_all() -> None:
    text = compare(476.3, 68.1, 96, "these 2 causes").says
    assert text.startswith("these 2 causes explain the loss; slightly more was predicted (")
