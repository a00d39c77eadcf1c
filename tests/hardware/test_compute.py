"""Peaks of the GPUs: dense, halved from what is printed with sparsity, each with a source."""

from tests.tables import examples
from topodiag.hardware import catalog
from topodiag.hardware.compute import peak
from topodiag.words.own_data import own_data


@examples("gpu", "precision", "tflops")
def test_peaks_are_dense(gpu: str, precision: str, tflops: float) -> None:
    spec = catalog.gpu_by_name(gpu)
    assert spec is not None
    found = peak(spec, precision)
    assert found.tflops == tflops
    assert found.source


def test_an_a100_has_no_fp8_and_a_t4_no_bf16() -> None:
    for name, precision in (("NVIDIA A100-SXM4-80GB", "fp8"), ("Tesla T4", "bf16")):
        spec = catalog.gpu_by_name(name)
        assert spec is not None
        assert peak(spec, precision) is None


def test_every_row_names_known_products_and_no_other_precision() -> None:
    known = {spec.name for spec in catalog.gpus()} | {spec.family for spec in catalog.gpus()}
    for row in own_data("hardware/compute")["gpu"]:
        names = row["names"]
        assert isinstance(names, list)
        assert set(names) <= known
        assert set(row) <= {"names", "source", "bf16", "fp16", "fp8"}
