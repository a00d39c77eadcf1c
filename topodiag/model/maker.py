"""Whose GPUs a piece of evidence is of, decided by what it holds, and so in whose words it is spoken of.

NVIDIA's words are the rule: they are also spoken where nothing tells the maker, and where evidence of both is mixed.
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING

from topodiag.model.devices import AMD as AMD_ID
from topodiag.model.devices import INSTINCT, PciKind
from topodiag.model.devices import NVIDIA as NVIDIA_ID
from topodiag.words.dialect import AMD, NVIDIA, Dialect, Maker
from topodiag.words.own_data import own_data, patterns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from topodiag.model.bench import BenchRun
    from topodiag.model.job import Job
    from topodiag.model.node import Node
    from topodiag.model.result import Result

NVLINKS = "NV"
"""How nvidia-smi's words for pairs that NVLink joins begin (NV18)."""
XGMI = "XGMI"
"""What ROCm's tools call a pair that xGMI joins."""
_IDS = {AMD_ID: Maker.AMD, NVIDIA_ID: Maker.NVIDIA}
_DATA = own_data("model/makers")
_NAMED = {Maker[name]: pattern for name, pattern in patterns("model/makers", "named").items()}
_EVENTS = {name: Maker[maker] for maker, names in _DATA["events"].items() for name in names}


def maker_named(text: str) -> Maker | None:
    """The maker of a product by its name, as tools and tables print it."""
    return next((maker for maker, pattern in _NAMED.items() if pattern.search(text)), None)


def makers_of(node: Node) -> frozenset[Maker]:
    """The makers that the evidence of a node speaks of: its tools, GPUs, kernel messages, and its topology file. The
    graphics of a server's CPU or board are no GPU of a job: a PCI function alone counts where it is a processing
    accelerator, or where the driver lists it as a GPU."""
    makers = set(node.makers)
    listed = {gpu.bus_id for gpu in node.gpus}
    makers |= {maker for gpu in node.gpus if gpu.name.value and (maker := maker_named(gpu.name.value))}
    for device in node.pci.values():
        computes = device.class_code.get(0) >> 8 in (0x1200, 0x0302) or device.device.value in INSTINCT
        if device.kind is PciKind.GPU and (device.bus_id in listed or computes):
            makers |= {_IDS[vendor] for vendor in (device.vendor.get(0),) if vendor in _IDS}
    named = {*map(attrgetter("kind"), node.events), *map(attrgetter("signature"), node.reports)}
    makers |= {_EVENTS[name] for name in named & _EVENTS.keys()}
    words = {cell.value or "" for cell in node.smi_matrix.values()}
    if XGMI in words:
        makers.add(Maker.AMD)
    if any(word.startswith(NVLINKS) for word in words):
        makers.add(Maker.NVIDIA)
    if node.nccl_file is not None and node.nccl_file.maker is not None:
        makers.add(node.nccl_file.maker)
    return frozenset(makers)


def dialect_of(judged: object) -> Dialect:
    """The dialect of what is judged: a node, a job, a measured run."""
    amd = False
    if hasattr(judged, "library"):
        amd = _is_of_amd(judged)  # type: ignore[arg-type]
    elif (run := getattr(judged, "run", None)) is not None:
        amd = run_maker(run) is Maker.AMD
    elif hasattr(judged, "smi_matrix"):
        amd = makers_of(judged) == {Maker.AMD}  # type: ignore[arg-type]
    return AMD if amd else NVIDIA


def run_maker(run: BenchRun) -> Maker | None:
    """Whose GPUs a run was measured on, by its devices or by the program that measured; None where neither tells."""
    named = {maker for device in run.devices if (maker := maker_named(device.name))}
    if len(named) == 1:
        return named.pop()
    return Maker.AMD if run.maker is Maker.AMD else None


def makers_of_all(
    nodes: Sequence[Node] = (), jobs: Sequence[Job] = (), runs: Sequence[BenchRun] = ()
) -> frozenset[Maker]:
    """The makers that all of this evidence speaks of: a job's log without a version may be of either."""
    makers = {maker for node in nodes for maker in makers_of(node)}
    makers |= {maker for run in runs if (maker := run_maker(run)) is not None}
    makers |= {Maker.AMD if _is_of_amd(job) else Maker.NVIDIA for job in jobs if job.nccl_versions or _is_of_amd(job)}
    return frozenset(makers)


def makers_of_result(result: Result) -> frozenset[Maker]:
    """The makers that the evidence of a whole answer speaks of."""
    return makers_of_all(result.nodes, result.jobs, [benchmark.run for benchmark in result.benchmarks])


def dialect_of_all(result: Result) -> Dialect:
    """The dialect of a whole answer: AMD's where all that it rests on is of AMD."""
    return AMD if makers_of_result(result) == {Maker.AMD} else NVIDIA


def _is_of_amd(job: Job) -> bool:
    """Whether a job runs on AMD's GPUs: by its library, or by its errors where no library says its version."""
    if job.nccl_versions or job.library == AMD.library:
        return job.library == AMD.library
    return any(word in event.text for event in job.events for word in _DATA["amd"])
