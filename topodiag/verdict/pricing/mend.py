"""What a mend is, and the hosts of a job or run that it is priced on."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import field, replace
from typing import ClassVar

from topodiag.expect.rates import Rates
from topodiag.expect.setup import Setup
from topodiag.lazy import dataclass
from topodiag.model.bench import BenchRun
from topodiag.model.finding import Finding
from topodiag.model.job import Job
from topodiag.model.nccl_tree import Element
from topodiag.nccl.connect.communicator import Member
from topodiag.words.units import plural


@dataclass(frozen=True, slots=True)
class Machine:
    """One host as NCCL's ranks meet it. `env` are its NCCL_ variables, `network` what joins it to others where that is
    not what the run is taken to have (`sockets`). `pace` is the share of what NCCL plans that the host can carry: a
    PCIe link that trained narrow slows what passes it, and NCCL plans with what the link is able to do."""

    tree: Element
    env: tuple[tuple[str, str], ...] = ()
    network: str = ""
    pace: float = 1.0

    def with_env(self, name: str, value: str) -> Machine:
        """The machine with a variable set."""
        return replace(self, env=tuple(sorted({**dict(self.env), name: value}.items())))


@dataclass(frozen=True)
class HostGround:
    """One host of a ground. `built` is what it should be, `views` its tree by each source, the one to trust first;
    `given` are the NCCL_ variables in force there, also those that are a cause."""

    name: str
    built: Machine
    views: tuple[Element, ...] = ()
    given: Mapping[str, str] = field(default_factory=dict)
    job: Job | None = None


@dataclass(frozen=True)
class Ground:
    """A run or a job with its machines. `run` is what was measured, or a run without rows that stands for a job's
    largest communicator. `size` in bytes is the size that is priced, `rates` NCCL's figures of the machines as built,
    `whole` what healthy ones reach of them, GB/s."""

    run: BenchRun
    setup: Setup
    hosts: tuple[HostGround, ...]
    members: tuple[Member, ...]
    size: int
    rates: Rates
    whole: float
    job: Job | None = None

    @property
    def what(self) -> str:
        """The quantity that is priced, in words."""
        return f"busbw of {self.run.collective}, {self.setup.ranks} ranks on {plural(self.setup.nodes, 'node')}"


class CannotError(ValueError):
    """Why a cause cannot be put into a machine: no source shows how much it takes. A sentence."""


class Mend(ABC):
    """One kind of mend."""

    least: ClassVar[float] = 1.0
    """Share of NCCL's figure down to which a run may fall with this cause alone, where that figure is an upper bound:
    NCCL knows links, and not what host memory or a TCP stack make of them."""
    unreckoned: ClassVar[str] = ""
    """What takes that share, in words that go on after "NCCL's model leaves out ..."."""
    lacks_nics: ClassVar[bool] = False
    """Whether the nodes of the finding lack NICs: they are built as their peers are."""

    @abstractmethod
    def inflict(self, machine: Machine, host: HostGround, finding: Finding) -> Machine:
        """The machine of a host with this cause in force; `machine` itself where it changes nothing there. Raises
        CannotError."""

    def claimed_settings(self, finding: Finding) -> frozenset[str]:
        """NCCL_ variables that are the cause: a machine as built is without them."""
        return frozenset()

    def claims_file(self, finding: Finding) -> bool:
        """Whether a topology file is the cause: a machine as built is without it."""
        return False
