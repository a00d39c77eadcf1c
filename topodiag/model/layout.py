"""The dimensions of parallelism, one line each, and the layout of a training job: its sizes, their order, and the ranks
of one group of each dimension.

Options, help, roles of communicators, checks of placement, prices and pictures are derived from the table of
dimensions. A new one is one field of `Sizes` with its `Role`; where its traffic follows a new `Pattern`, mypy names the
function that has to price it (topodiag/cost/step.py).

The convention of ranks is Megatron's (megatron/core/parallel_state.py, RankGenerator): the first dimension of the order
varies fastest. Experts divide the data and context dimensions. Pure arithmetic: a job of a million ranks costs nothing
here; the groups of all ranks are layout_groups.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, fields, replace
from enum import Enum
from itertools import product
from math import gcd, prod
from typing import Any

from topodiag.lazy import dataclass
from topodiag.model.errors import TopodiagError
from topodiag.model.provenance import Origin
from topodiag.words.text import clean


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
    return listed(tuple(f"--{name}" for name in NAMES))


def listed(names: tuple[str, ...] = NAMES, last: str = "or") -> str:
    """Names of dimensions in a sentence, as `tp, cp, dp and pp`."""
    return f"{', '.join(names[:-1])} {last} {names[-1]}"


TRAINING = {
    "params": 70e9, "layers": 80, "hidden": 8192, "seq": 4096, "micro_batch": 1, "global_batch": None,
    "precision": "bf16", "experts": 0, "top_k": 2, "capacity": 1.0, "active_params": None, "kv_share": 1.0, "chunks": 1,
    "zero": 1, "shard": None, "sequence_parallel": False, "ulysses": False, "recompute": "selective",
    "efficiency": 0.5, "peak_tflops": None, "overlap": OVERLAP,
}  # fmt: skip
"""What is trained where the options do not say it: the defaults of `topodiag place`."""


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

    @property
    def trained(self) -> dict[str, Any]:
        """All options of what is trained, those that are said in the place of their defaults."""
        return {**TRAINING, "overlap": OVERLAP | dict.fromkeys(self.waited_for, 0.0), **self.options}


COPIES = tuple(dimension for dimension in DIMENSIONS if dimension.repeats_weights)
"""Dimensions whose ranks hold the same dense weights, the fastest first."""
_LARGEST = 1 << 24
"""No job has more ranks; keeps a mistyped size from filling the memory."""


class LayoutError(TopodiagError):
    """A layout that is none, or that does not make the number of ranks that the job has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout(Sizes):
    """Sizes of the dimensions; `dp` 0 is what the others leave. `order`: the first varies fastest.

    `group`, `replicas` and the like are the ranks of one group, with an open `dp` counting as 1.
    """

    order: str = ORDER

    def for_world(self, world_size: int) -> Layout:
        """The same with its data dimension filled in. Raises LayoutError when it does not make that many ranks."""
        for name in NAMES:
            size = getattr(self, name) or (1 if name == "dp" else 0)
            if not 1 <= size <= _LARGEST:
                raise LayoutError(f"{name} of the layout is {size}", hint="sizes are 1 or more")
        model = self.replica
        dp = self.dp or world_size // model
        if dp < 1 or model * dp != world_size:
            factors = self.replica_words + (f" x dp {self.dp}" if self.dp else "")
            says = f"needs {model * dp} ranks" if self.dp else f"needs a multiple of {model} ranks"
            raise LayoutError(f"the layout {factors} {says}; the job has {world_size}", hint="correct the layout")
        whole = replace(self, dp=dp)
        if whole.copies % self.ep:
            words = " x ".join(f"{copy.name} {getattr(whole, copy.name)}" for copy in reversed(COPIES))
            raise LayoutError(f"ep {self.ep} of the layout does not divide {words}", hint="correct the layout")
        self.names()
        return whole

    def names(self) -> tuple[str, ...]:
        """The dimensions, fastest first; those left out have size 1. Raises LayoutError for an order that is none."""
        names = tuple(self.order.lower().split("-"))
        unknown = [name for name in names if name not in NAMES]
        left_out = [name for name in NAMES if name not in names]
        wanted = [name for name in left_out if getattr(self, name) > 1]
        if unknown or wanted or len(set(names)) != len(names):
            raise LayoutError(
                f"the order {clean(self.order, limit=80)} does not name each dimension of the layout once",
                hint=f"as {ORDER}, fastest first",
            )
        return names + tuple(left_out)

    @property
    def filled(self) -> Layout:
        """The same with an open data dimension of size 1."""
        return self if self.dp else replace(self, dp=1)

    @property
    def sizes(self) -> Mapping[str, int]:
        """Of the dimensions that number the ranks."""
        return {name: getattr(self, name) or 1 for name in RANKED}

    @property
    def all_sizes(self) -> Mapping[str, int]:
        """Of all dimensions, those that number the ranks first."""
        return {**self.sizes, **{name: getattr(self, name) for name in NAMES if name not in RANKED}}

    def over(self, *what: Divides) -> int:
        """Among how many ranks the job shares these: the product of the sizes."""
        return prod(getattr(self, dimension.name) or 1 for dimension in that_divide(*what))

    @property
    def copies(self) -> int:
        """Ranks that hold the same dense weights."""
        return prod(self.sizes[copy.name] for copy in COPIES)

    @property
    def replica(self) -> int:
        """Ranks of one replica: of all dimensions that number the ranks but the data dimension."""
        return prod(size for name, size in self.sizes.items() if name != "dp")

    @property
    def replica_words(self) -> str:
        return " x ".join(f"{name} {size}" for name, size in self.sizes.items() if name != "dp")

    @property
    def least_world(self) -> int:
        """Ranks of the smallest job of these sizes: experts take their ranks out of those that repeat the weights."""
        return self.replica * self.ep // gcd(replace(self, dp=1).copies, self.ep)

    @property
    def world(self) -> int:
        return prod(self.sizes.values())

    @property
    def dense_order(self) -> tuple[str, ...]:
        """The dimensions that number the ranks, fastest first. Raises LayoutError."""
        return dense_order(self.order)

    def stride(self, dimension: str) -> int:
        """Ranks from one member of a group to the next."""
        order = self.dense_order
        return prod(self.sizes[name] for name in order[: order.index(dimension)])

    def group(self, dimension: str, base: int = 0) -> range:
        """The ranks of the group of rank `base` (whose own place in the dimension is 0)."""
        step = self.stride(dimension)
        return range(base, base + step * self.sizes[dimension], step)

    def worst(self, dimension: str, domain: int) -> range:
        """The group over the most domains of `domain` ranks: where a group does not divide a domain, some straddle."""
        step, size = self.stride(dimension), self.sizes[dimension]
        blocks = min(self.world // (step * size), 64)
        groups = [self.group(dimension, block * step * size) for block in range(blocks)]
        return max(groups, key=lambda ranks: len({rank // domain for rank in ranks}))

    def replicas(self) -> tuple[int, ...]:
        """The ranks that hold the same dense weights as rank 0, or its context: cp fastest, dp slowest."""
        return tuple(map(sum, product(*(self.group(copy.name) for copy in reversed(COPIES)))))

    def shards(self, size: int) -> tuple[int, ...]:
        """A group of HSDP that shares one copy of the weights; with `ep` ranks that of rank 0 which shares the experts.
        Raises LayoutError."""
        replicas = self.replicas()
        if size < 1 or len(replicas) % size:
            words = " x ".join(copy.name for copy in COPIES)
            raise LayoutError(f"a shard group of {size} does not divide {words} = {len(replicas)}")
        return replicas[:size]

    def shard_replicas(self, size: int) -> tuple[int, ...]:
        """The ranks that hold the same shard as rank 0; of `ep` ranks those that hold the same experts."""
        return self.replicas()[::size]


def dense_order(text: str) -> tuple[str, ...]:
    """An order as `tp-cp-ep-dp-pp` without `ep`, whose place follows from the others. Raises LayoutError."""
    names = tuple(name for name in text.lower().split("-") if name in RANKED or name not in NAMES)
    if not set(names) <= set(RANKED) or len(set(names)) < len(names):
        raise LayoutError(f"an order names each of {listed(RANKED, 'and')} at most once, not {text[:40]!r}")
    return (*names, *(name for name in RANKED if name not in names))
