"""Peaks of the GPUs: dense, halved from what is printed with sparsity, each with a source."""

from __future__ import annotations

import pytest

from topodiag.hardware import catalog
from topodiag.hardware.compute import PRECISIONS, _rows, peak


@pytest.mark.parametrize(
    ("gpu", "precision", "tflops"),
    [
        ("NVIDIA H100 80GB HBM3", "bf16", 989.4),
        ("NVIDIA H100 PCIe", "bf16", 756),
        ("NVIDIA A100-SXM4-80GB", "bf16", 312),
        ("NVIDIA B200", "fp8", 4500),
        ("NVIDIA L40S", "bf16", 362.05),
        ("NVIDIA H200 NVL", "fp8", 1670.5),
        ("NVIDIA GB200", "bf16", 2500),
        ("NVIDIA A40", "bf16", 149.7),
        ("NVIDIA GeForce RTX 4090", "bf16", 165.2),
        ("Tesla V100S-PCIE-32GB", "fp16", 130),
        ("Tesla V100-PCIE-32GB", "fp16", 112),
    ],
)
def test_peaks_are_dense(gpu: str, precision: str, tflops: float) -> None:
    spec = catalog.gpu_by_name(gpu)
    assert spec is not None
    found = peak(spec, precision)
    assert found is not None
    assert found.tflops == tflops
    assert found.source


def test_an_a100_has_no_fp8_and_a_t4_no_bf16() -> None:
    for name, precision in (("NVIDIA A100-SXM4-80GB", "fp8"), ("Tesla T4", "bf16")):
        spec = catalog.gpu_by_name(name)
        assert spec is not None
        assert peak(spec, precision) is None


def test_every_row_names_known_products_and_no_other_precision() -> None:
    known = {spec.name for spec in catalog.gpus()} | {spec.family for spec in catalog.gpus()}
    for row in _rows():
        names = row["names"]
        assert isinstance(names, list)
        assert set(names) <= known
        assert set(row) <= {"names", "source", *PRECISIONS}
