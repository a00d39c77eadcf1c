"""A job in `facts.jobs`: its ranks, communicators, settings and events. Unknown numbers are null."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from topodiag.report.documents.from_model import Of
from topodiag.report.documents.types.common import Level


class Rank(Struct, frozen=True, kw_only=True):
    """A process of the job."""

    rank: int
    host: str
    pid: int | None
    cuda_dev: int | None
    nvml_dev: int | None
    bus_id: str | None


class CommChannels(Struct, frozen=True, kw_only=True):
    """Channels as NCCL counts them."""

    coll: int | None
    collnet: int | None
    nvls: int | None
    p2p: int | None


class LoggedChoice(Struct, frozen=True, kw_only=True):
    """An algorithm and protocol that NCCL logged, and how often."""

    collective: str
    bytes: int
    algorithm: str
    protocol: str
    count: int


class InitSeconds(Struct, frozen=True, kw_only=True):
    """Seconds that the start of a communicator took, over its ranks."""

    median: float | None
    max: float | None


class Communicator(Struct, frozen=True, kw_only=True):
    """A communicator. `ranks` are those of the world; `parent` is an index into `communicators`."""

    name: str
    role: str
    role_confidence: Annotated[Level, Of("role_sure")]
    role_why: str
    nranks: int
    ranks: list[int | None]
    hosts: list[str]
    nodes: int | None
    parent: int | None
    color: int | None
    channels: CommChannels
    transports: dict[str, int]
    gdr: bool | None
    algorithms: list[str]
    choices: list[LoggedChoice]
    init_complete: bool
    init_s: InitSeconds


class Event(Struct, frozen=True, kw_only=True):
    """Something that went wrong or was worth a line. `time_s` is seconds since the epoch where the log has a date."""

    kind: str
    text: str
    host: str
    rank: int | None
    time_s: Annotated[float | None, Of("ts")]
    count: int
    secondary: bool
    source: Annotated[str | None, Of("origin.source")]
    line: Annotated[int | None, Of("origin.line")]


class StepLevel(Struct, frozen=True, kw_only=True):
    """Steps of one pace in a row; `typical` in the unit of the series, `time_s` seconds since the epoch of the first
    where its line has a date."""

    first: int
    last: int
    count: int
    typical: float
    time_s: Annotated[float | None, Of("time")]


class StepPace(Struct, frozen=True, kw_only=True):
    """The steps of the last start of one rank, as its own log prints them, after the warm-up."""

    source: Annotated[str, Of("series.source")]
    rank: Annotated[int | None, Of("series.rank")]
    host: Annotated[str | None, Of("series.host")]
    unit: Annotated[
        str, Of("series.unit"), Meta(description="s for seconds a step, else a rate: tokens/s, samples/s, TFLOP/s.")
    ]
    start: int
    starts: int
    lines: int
    first: int
    last: int
    typical: Annotated[float, Meta(description="The median.")]
    low: Annotated[float, Meta(description="10 % of the steps are below it.")]
    high: Annotated[float, Meta(description="10 % of the steps are above it.")]
    levels: list[StepLevel]
    drift: Annotated[float, Meta(description="How many times the steps became longer little by little; 1: none.")]
    slow: Annotated[list[int], Meta(description="Numbers of single slow steps, at most 1000.")]
    every: Annotated[int | None, Meta(description="The distance in which slow steps recur.")]
    resized: Annotated[int | None, Meta(description="The first step of another batch or sequence.")]


class Job(Struct, frozen=True, kw_only=True):
    """One job."""

    name: str
    nccl_version: Annotated[str | None, Meta(description="The number alone, of the first of `nccl_versions`.")]
    nccl_versions: Annotated[list[str], Meta(description="As printed, with the CUDA that they are built for.")]
    world_size: int | None
    hosts: list[str]
    ranks: list[Rank]
    communicators: list[Communicator]
    networks: list[str]
    settings: Annotated[
        dict[str, dict[str, int]], Meta(description="By name and value: the number of processes that have it.")
    ]
    subsystems: list[str]
    notes: Annotated[
        list[str],
        Meta(
            description="What a reader of this job should know: parts that are missing, a layout that does not fit it."
        ),
    ]
    events: list[Event]
    steps: Annotated[
        list[StepPace], Of("paces"), Meta(description="The pace of its training, by the ranks that print it.")
    ]
