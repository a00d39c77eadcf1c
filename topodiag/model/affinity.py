"""A measured matrix of GPUs and NICs: what each pair carries, or how long it takes."""

from __future__ import annotations

from topodiag.lazy import dataclass


@dataclass(frozen=True, slots=True)
class Affinity:
    """`values[gpu][nic]` in `unit` (`GB/s`, `Gb/s`, `us` or `ns`), all above zero; `gpus` and `nics` as the file names
    them (`GPU0`, `mlx5_0`, or bus ids)."""

    gpus: tuple[str, ...]
    nics: tuple[str, ...]
    values: tuple[tuple[float, ...], ...]
    unit: str = "GB/s"

    @property
    def is_latency(self) -> bool:
        return self.unit in ("us", "ns")
