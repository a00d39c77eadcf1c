"""The dimensions of parallelism, one line each: all that any part of topodiag has to know of one.

Options, help, roles of communicators, checks of placement, prices and pictures are derived from this table. A new
dimension is one field of `Sizes` with its `Role`; where its traffic follows a new `Pattern`, mypy names the function
that has to price it (topodiag/cost/step.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, fields, replace
from enum import Enum

from topodiag.lazy import dataclass
from topodiag.model.provenance import Origin


class Role(Enum):
    """What a communicator is for in the training job."""

    WORLD = "world"
    TP = "TP"
    CP = "CP"
    EP = "EP"
    DP = "DP"
    PP = "PP"
    OTHER = ""


class Divides(Enum):
    """What of the training job the ranks of a dimension share among them."""

    TENSORS = "the weights and activations of each layer"
    SEQUENCE = "the tokens of each sequence"
    EXPERTS = "the experts of each layer; its ranks are those of dimensions that repeat the weights"
    BATCH = "the sequences of a batch"
    LAYERS = "the layers of the model"


class Pattern(Enum):
    """The traffic of a dimension: topodiag/cost/step.py prices each."""

    ACTIVATIONS = "activations all-reduced between the halves of a layer"
    ATTENTION = "keys and values around a ring, or heads against tokens all to all"
    TOKENS = "tokens to their experts and back, all to all"
    GRADIENTS = "gradients, and the weights that ZeRO shards"
    BOUNDARIES = "activations and their gradients over a boundary between stages"


@dataclass(frozen=True, slots=True)
class Dimension:
    """One dimension.

    `words` are those of logs and of descriptions of process groups that say this role. `split_check` is the check that
    speaks when a group leaves an NVLink domain in which it fits, "" where a group may leave one. `hidden` is the share
    of the traffic that frameworks run beside compute unless told otherwise, 0 to 1. `help` ends without a full stop.
    `name` is its option and its place in an order of dimensions; the table fills it in.
    """

    noun: str
    role: Role
    words: tuple[str, ...]
    divides: Divides
    pattern: Pattern
    split_check: str
    hidden: float
    help: str
    name: str = ""

    @property
    def together(self) -> bool:
        """Whether a group belongs inside one NVLink domain where it fits."""
        return bool(self.split_check)

    @property
    def inside_layers(self) -> bool:
        """Whether the traffic lies between the compute of every layer: each micro-batch of a stage takes longer, and
        the pipeline's idle time with it (Narayanan et al. 2021, section 3.2)."""
        return self.divides in {Divides.TENSORS, Divides.SEQUENCE, Divides.EXPERTS}

    @property
    def numbers_ranks(self) -> bool:
        """Whether the size multiplies the ranks of the job; experts are taken out of other dimensions."""
        return self.divides is not Divides.EXPERTS

    @property
    def repeats_weights(self) -> bool:
        """Whether the ranks of a group hold the same dense weights."""
        return self.divides in {Divides.SEQUENCE, Divides.BATCH}


def _row(default: int, row: Dimension) -> int:
    """A field of `Sizes` with its line of the table."""
    default_value: int = field(default=default, metadata={"row": row})
    return default_value


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """The table: how many ranks a group of each dimension has, in Megatron's order, the fastest first; 0 is what the
    others leave."""

    tp: int = _row(1, Dimension(
        "tensor", Role.TP, ("tp", "tensor", "etp"), Divides.TENSORS, Pattern.ACTIVATIONS,
        split_check="PLC001", hidden=0.0, help="Tensor-parallel ranks",
    ))  # fmt: skip
    cp: int = _row(1, Dimension(
        "context", Role.CP, ("cp", "context", "sp", "sequence"), Divides.SEQUENCE, Pattern.ATTENTION,
        split_check="PLC001", hidden=1.0, help="Context-parallel ranks",
    ))  # fmt: skip
    ep: int = _row(1, Dimension(
        "expert", Role.EP, ("ep", "expert", "moe"), Divides.EXPERTS, Pattern.TOKENS,
        split_check="PLC002", hidden=0.0, help="Expert-parallel ranks, out of dp x cp",
    ))  # fmt: skip
    dp: int = _row(0, Dimension(
        "data", Role.DP, ("dp", "data", "ddp", "fsdp", "hsdp", "edp", "replicate", "shard"),
        Divides.BATCH, Pattern.GRADIENTS, split_check="", hidden=1.0, help="Data-parallel ranks",
    ))  # fmt: skip
    pp: int = _row(1, Dimension(
        "pipeline", Role.PP, ("pp", "pipe", "pipeline"), Divides.LAYERS, Pattern.BOUNDARIES,
        split_check="", hidden=0.0, help="Pipeline stages",
    ))  # fmt: skip


DIMENSIONS: tuple[Dimension, ...] = tuple(replace(size.metadata["row"], name=size.name) for size in fields(Sizes))
"""All of them, in the order of ranks that Megatron takes unless told otherwise: the fastest first."""
NAMES = tuple(dimension.name for dimension in DIMENSIONS)
RANKED = tuple(dimension.name for dimension in DIMENSIONS if dimension.numbers_ranks)
"""Names of the dimensions that number the ranks."""
ORDER = "-".join(NAMES)
OVERLAP = {dimension.name: dimension.hidden for dimension in DIMENSIONS if dimension.hidden}
"""By dimension, the share of traffic that frameworks run beside compute unless told otherwise: gradients beside the
backward pass, keys and values beside attention."""
BY_NAME = {dimension.name: dimension for dimension in DIMENSIONS}
BY_ROLE = {dimension.role: dimension for dimension in DIMENSIONS}
ROLE_WORDS = {word: dimension.role for dimension in DIMENSIONS for word in dimension.words}


def that_divide(*what: Divides) -> tuple[Dimension, ...]:
    """The dimensions whose ranks share one of these."""
    return tuple(dimension for dimension in DIMENSIONS if dimension.divides in what)


def of_label(label: str) -> Dimension | None:
    """The dimension whose groups a label names, as `tp`, `ep (4)` or `dp shards`; None for a name of somebody's own."""
    return BY_NAME.get(label.partition(" ")[0])


def flags() -> str:
    """The options of all sizes, as `--tp, --cp, --ep, --dp or --pp`."""
    *first, final = (f"--{name}" for name in NAMES)
    return f"{', '.join(first)} or {final}"


def listed(names: tuple[str, ...] = NAMES, last: str = "or") -> str:
    """Names of dimensions in a sentence, as `tp, cp, dp and pp`."""
    return f"{', '.join(names[:-1])} {last} {names[-1]}"


@dataclass(frozen=True, slots=True)
class JobSettings:
    """The settings of a job. `sizes` are those of parallel dimensions by their short names (tp, pp, cp, ep, dp), in the
    `order` of their ranks, and `world` the ranks they are of (0: not said). `options` are what is trained by the names
    of `topodiag model step`. `waited_for` are dimensions whose communication nothing hides. `serves`: an engine answers
    requests, and nothing is trained. `origins` are the places of sizes and options, by the same names."""

    source: str
    sizes: Mapping[str, int] = field(default_factory=dict)
    world: int = 0
    options: Mapping[str, int | float | str | bool] = field(default_factory=dict)
    origins: Mapping[str, Origin] = field(default_factory=dict)
    waited_for: tuple[str, ...] = ()
    order: str = ORDER
    serves: bool = False

    @property
    def is_sized(self) -> bool:
        """Whether they say how large the model is."""
        return "params" in self.options
