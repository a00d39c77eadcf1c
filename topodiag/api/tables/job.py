"""Tables of jobs, as `topodiag logs --csv` writes them: rows and types are those of report/job/registry.py."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from topodiag.api.tables.interface import Row, Table, columns
from topodiag.model.result import Result
from topodiag.report.job.registry import TABLES


def _rows(name: str) -> Callable[[Result], Iterable[Row]]:
    """The rows of the table that `--csv` has by this name."""

    def rows(result: Result) -> Iterable[Row]:
        return TABLES[name].rows(result) if result.jobs else ()

    return rows


RANKS = Table(
    "Ranks of the jobs.",
    columns("""
        job text: Job.
        rank whole: Rank in the world.
        host text: Node.
        pid whole: Process.
        cuda_dev whole: CUDA device of the process.
        nvml_dev whole: GPU of the node.
        bus_id text: PCI address of the GPU.
        nics text: NICs that the rank sends through, parted by blanks.
    """),
    _rows("ranks"),
)
COMMUNICATORS = Table(
    "Communicators of the jobs.",
    columns("""
        job text: Job.
        comm whole: Number of the communicator.
        name text: Name.
        role text: world, TP, DP and so on.
        role_confidence text: low, medium or high.
        nranks whole: Ranks.
        nodes whole: Nodes.
        parent whole: Communicator that it was split from.
        color whole: Colour of the split.
        ranks text: Its ranks in the world, parted by blanks.
        hosts text: Its nodes, parted by blanks.
        coll whole: Channels of collectives.
        collnet whole: Channels of CollNet.
        nvls whole: Channels of NVLS.
        p2p whole: Channels of send and receive.
        gdr truth: Whether GPUDirect RDMA is used.
        transports text: Connections by transport.
        algorithms text: Algorithms that are set up.
        init_complete truth: Whether it came up.
        init_max_s number s: Start of the slowest rank.
    """),
    _rows("comms"),
)
CONNECTIONS = Table(
    "Connections between ranks.",
    columns("""
        job text: Job.
        comm whole: Number of the communicator.
        rank whole: Rank in the communicator.
        peer whole: The other rank in the communicator.
        world_rank whole: Rank in the world.
        world_peer whole: The other rank in the world.
        host text: Node of the rank.
        peer_host text: Node of the other rank.
        channels_mask text: Channels, a bit each, in hexadecimal.
        use text: collective or send/recv.
        direction text: send or receive.
        transport text: P2P/CUMEM, NET/IB and so on.
        net_dev whole: NIC as NCCL counts them.
        proxy whole: Rank whose NIC is used (PXN).
        count whole: Lines of the log that say so.
        source text: File of the first.
        line whole: Its line.
    """),
    _rows("connections"),
)
RINGS = Table(
    "Rings of the communicators, place by place.",
    columns("""
        job text: Job.
        comm whole: Number of the communicator.
        channel whole: Channel.
        place whole: Place in the ring.
        rank whole: Rank in the communicator.
        world_rank whole: Rank in the world.
    """),
    _rows("rings"),
)
EVENTS = Table(
    "What went wrong in the jobs, in the order of time.",
    columns("""
        job text: Job.
        time_s number s: Time since the epoch, where the log has a date.
        host text: Node.
        pid whole: Process.
        rank whole: Rank in the world.
        level text: NCCL's level.
        kind text: Kind of event.
        secondary truth: Whether another event explains it.
        count whole: Lines alike.
        text text: The line.
        place text: NCCL's source file and line.
        source text: File.
        line whole: Its line.
    """),
    _rows("events"),
)
SETTINGS = Table(
    "NCCL settings of the processes.",
    columns("""
        job text: Job.
        host text: Node.
        pid whole: Process.
        rank whole: Rank in the world.
        name text: Variable.
        value text: Value.
        how text: How it was set.
    """),
    _rows("settings"),
)
CHOICES = Table(
    "Algorithms and protocols that NCCL logged.",
    columns("""
        job text: Job.
        comm whole: Number of the communicator.
        collective text: Collective.
        bytes whole bytes: Size.
        algorithm text: Algorithm.
        protocol text: Protocol.
        count whole: How often.
    """),
    _rows("choices"),
)
STEPS = Table(
    "Steps of trainings, as their own logs print them.",
    columns("""
        job text: Job.
        rank whole: Rank that printed it, where a line or a file names one.
        host text: Node that printed it.
        start whole: Which start of the training, from 1.
        step whole: Number of the step.
        value number: What it took, or how fast it was, in the unit.
        unit text: s for seconds a step, else tokens/s, samples/s or TFLOP/s.
        time_s number s: Time of the line since the epoch, where it has a date.
        work number: Batch times sequence length, as far as the line says them.
        source text: File.
        line whole: Its line.
    """),
    _rows("steps"),
)
