"""What the dimensions of parallel training send, in bytes, and the pipeline's idle share.

Per GPU and per step unless said otherwise. Symbols: s sequence, b micro-batch, h hidden size, L layers on this GPU, m
micro-batches in a step. Sources: D. Narayanan et al., Efficient large-scale language model training on GPU clusters
using Megatron-LM (2021); V. Korthikanti et al., Reducing activation recomputation in large transformer models (2022);
S. Rajbhandari et al., ZeRO: memory optimizations toward training trillion parameter models (2020); Y. Zhao et al.,
PyTorch FSDP (2023); H. Liu et al., Ring attention with blockwise transformers (2023); S. Jacobs et al., DeepSpeed
Ulysses (2023); D. Lepikhin et al., GShard (2020).
"""

from __future__ import annotations

from topodiag.lazy import dataclass


@dataclass(frozen=True, slots=True)
class Traffic:
    """Calls of one collective: how many in a step, of how many bytes each, and why so."""

    collective: str
    calls: float
    size: float
    """Bytes as nccl-tests counts the collective's first column."""
    formula: str


def tensor(
    layers: float, micro_batches: int, activation: float, *, sequence_parallel: bool = False
) -> tuple[Traffic, ...]:
    """Two all-reduces per layer forward (after attention and after the MLP) and as many backward, of an activation
    each; with sequence parallelism each becomes a reduce-scatter and an all-gather of the same bytes (Megatron-LM)."""
    calls = 4.0 * layers * micro_batches
    if sequence_parallel:
        why = "2 forward and 2 backward per layer and micro-batch, of b x s x h"
        return (Traffic("all_gather", calls, activation, why), Traffic("reduce_scatter", calls, activation, why))
    return (
        Traffic("all_reduce", calls, activation, "2 forward and 2 backward per layer and micro-batch, of b x s x h"),
    )


def context(
    layers: float, micro_batches: int, key_value: float, ranks: int, *, ulysses: bool = False, activation: float = 0.0
) -> tuple[Traffic, ...]:
    """Ring attention: n-1 exchanges of this rank's keys and values per layer forward, twice as many backward (keys,
    values and their gradients). Ulysses: four all-to-alls per layer forward (queries, keys, values, the output) and as
    many backward, of this rank's `activation` each."""
    if ranks < 2:
        return ()
    if ulysses:
        why = "q, k, v and the output, both ways, of this rank's b x s x h"
        return (Traffic("all_to_all", 8.0 * layers * micro_batches, activation, why),)
    calls = 3.0 * layers * micro_batches * (ranks - 1)
    return (Traffic("send_recv", calls, key_value, "(n-1) exchanges of keys and values, forward, and twice backward"),)


def expert(
    layers: float,
    micro_batches: int,
    tokens: float,
    hidden: int,
    bytes_each: float,
    *,
    top_k: int,
    capacity: float = 1.0,
) -> tuple[Traffic, ...]:
    """Dispatch and combine per expert layer, forward and backward: four all-to-alls, each of tokens x top-k x capacity
    x h. `tokens` are those of this rank, `capacity` the factor by which buffers are larger than an even share."""
    size = tokens * top_k * capacity * hidden * bytes_each
    why = "dispatch and combine, both ways, of tokens x top-k x capacity x h"
    return (Traffic("all_to_all", 4.0 * layers * micro_batches, size, why),)


def pipeline(micro_batches: int, activation: float, *, chunks: int = 1) -> tuple[Traffic, ...]:
    """An activation forward and its gradient backward over each boundary, per micro-batch and model chunk."""
    why = "activation and gradient per micro-batch" + (" and chunk" if chunks > 1 else "")
    return (Traffic("send_recv", 2.0 * micro_batches * chunks, activation, why),)


def data(parameters: float, bytes_each: float) -> tuple[Traffic, ...]:
    """One all-reduce of this rank's gradients per step."""
    return (Traffic("all_reduce", 1.0, parameters * bytes_each, "gradients once per step"),)


def zero(stage: int, parameters: float, bytes_each: float, micro_batches: int = 1) -> tuple[Traffic, ...]:
    """ZeRO 1 and 2: reduce-scatter of gradients and all-gather of parameters, as much as an all-reduce. ZeRO 3 (FSDP):
    all-gather of parameters forward and again backward for every micro-batch, reduce-scatter of gradients once per
    step; with one micro-batch 1.5 times the traffic (Rajbhandari et al., section 7). Raises ValueError."""
    size = parameters * bytes_each
    if stage not in (1, 2, 3):
        raise ValueError(f"ZeRO has stages 1, 2 and 3, not {stage}")
    gathers, why = (
        (2.0 * micro_batches, "parameters, forward and backward of every micro-batch")
        if stage == 3
        else (1.0, "parameters after the step")
    )
    return (Traffic("all_gather", gathers, size, why), Traffic("reduce_scatter", 1.0, size, "gradients"))


def hybrid(
    parameters: float, bytes_each: float, shard: int, micro_batches: int = 1
) -> tuple[tuple[Traffic, ...], tuple[Traffic, ...]]:
    """HSDP: ZeRO 3 among `shard` ranks, and an all-reduce of a rank's shard of the gradients among the replicas.
    (within a shard group, among replicas). Raises ValueError for fewer than one rank."""
    if shard < 1:
        raise ValueError(f"a shard group has at least one rank, not {shard}")
    return (
        zero(3, parameters, bytes_each, micro_batches) if shard > 1 else (),
        (Traffic("all_reduce", 1.0, parameters * bytes_each / shard, "a shard's gradients once per step"),),
    )


def bubble(stages: int, micro_batches: int, chunks: int = 1) -> float:
    """Idle share of the pipeline's time, 0 to 1: (p-1)/(m+p-1) for GPipe and 1F1B alike (1F1B saves memory, not time);
    interleaved with v chunks per GPU (p-1)/(v m+p-1) (Narayanan et al., section 2.2)."""
    return (stages - 1) / (chunks * micro_batches + stages - 1) if stages > 1 else 0.0


def exposed(communication: float, compute: float, overlap: float) -> float:
    """What of the communication remains to be waited for: `overlap` of it (0 to 1) runs beside the compute that can
    hide it, and never more than that compute lasts. Any unit of time."""
    return communication - min(communication * overlap, compute)
