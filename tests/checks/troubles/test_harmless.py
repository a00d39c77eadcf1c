"""Which warnings tell of no fault."""

from __future__ import annotations

import pytest

from tests.checks import jobs
from topodiag.checks.troubles.job import why_harmless


@pytest.mark.parametrize(
    "text",
    [
        # mlx5dvwrap.cc and ibvwrap.cc return ncclSystemError behind each of these
        "NET/MLX5: Call to mlx5dv_reg_dmabuf_mr failed with error Cannot allocate memory",
        "NET/MLX5: Call to mlx5dv_query_device failed with error Invalid argument",
        "NET/IB: mlx5dv_create_qp failed to create QP: Invalid argument",
        "NET/IB: Error in mlx5dv_get_data_direct_sysfs_path with device mlx5_0",
        "Call to ibv_set_ece failed with error Invalid argument errno 22",
    ],
)
def test_a_call_that_failed_is_no_missing_symbol(text: str) -> None:
    assert not why_harmless(jobs.event("other", text), jobs.job())


@pytest.mark.parametrize(
    "text",
    [
        "dlvsym failed on mlx5dv_is_supported - libmlx5.so.1: undefined symbol version MLX5_1.8",
        "dlvsym failed on ibv_query_ece - libibverbs.so.1: undefined symbol version IBVERBS_1.10",
        "Call to ibv_query_port_speed failed with error Operation not supported errno 95",
    ],
)
def test_an_optional_symbol_that_the_library_has_not_is_harmless(text: str) -> None:
    assert why_harmless(jobs.event("other", text), jobs.job())
