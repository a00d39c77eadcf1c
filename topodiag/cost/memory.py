"""Memory of training on a GPU, in GB (1e9 bytes): weights, gradients, optimiser, activations.

S. Rajbhandari et al., ZeRO (2020), section 3: 16-bit weights and gradients, and K bytes of optimiser state per
parameter. Adam's two 32-bit moments are 8 bytes; with a 32-bit master copy of the weights it is 12. Activations: V.
Korthikanti et al., Reducing activation recomputation in large transformer models (2022), section 4.
"""

from __future__ import annotations

from topodiag.lazy import dataclass

ADAM_BYTES = 8.0
ADAM_WITH_MASTER_BYTES = 12.0


@dataclass(frozen=True, slots=True)
class States:
    """GB per GPU."""

    weights: float
    gradients: float
    optimiser: float

    @property
    def total(self) -> float:
        return self.weights + self.gradients + self.optimiser


def states(
    parameters: float, ranks: int = 1, stage: int = 0, *, bytes_each: float = 2.0, optimiser_bytes: float = ADAM_BYTES
) -> States:
    """The states of `parameters` on one of `ranks` GPUs under ZeRO `stage`: 0 none, 1 shards the optimiser, 2 gradients
    too, 3 weights too. Raises ValueError for another stage or fewer than one rank."""
    if stage not in (0, 1, 2, 3) or ranks < 1:
        raise ValueError(f"ZeRO has stages 0 to 3 over at least one rank, not {stage} over {ranks}")
    copy_gb = parameters * bytes_each / 1e9
    optimiser = parameters * optimiser_bytes / 1e9
    return States(
        copy_gb / (ranks if stage >= 3 else 1),
        copy_gb / (ranks if stage >= 2 else 1),
        optimiser / (ranks if stage >= 1 else 1),
    )


RECOMPUTE = ("none", "selective", "full")


def activations(
    tokens: float,
    hidden: int,
    layers: float,
    tensor: int = 1,
    *,
    sequence_parallel: bool = True,
    recompute: str = "selective",
) -> float:
    """GB of 16-bit activations that `layers` layers keep for one micro-batch of `tokens` (b x s) on one GPU.

    Per token and layer, with t tensor-parallel ranks: h x 34 / t with sequence parallelism, h x (10 + 24 / t) without;
    full recomputation keeps the layer's input alone, 2 h. The attention matrix is not kept (`selective`, or attention
    in blocks), so that `none` and `selective` are alike here. Raises ValueError for another word.
    """
    if recompute not in RECOMPUTE:
        raise ValueError(f"recompute is one of {', '.join(RECOMPUTE)}, not {recompute!r}")
    if recompute == "full":
        share = 2.0 / (tensor if sequence_parallel else 1)
    else:
        share = 34.0 / tensor if sequence_parallel else 10.0 + 24.0 / tensor
    return tokens * hidden * layers * share / 1e9
