"""What a transport is: it starts the collector on nodes, and hands every line that comes back to an ear.

Adding one is a file with a `Transport` subclass and a line in `registry.py`. A transport judges nothing: the lines say
what became of a node (`lines.py`), and the order of attempts and the deadlines are of `run.py`.
"""

from __future__ import annotations

import shutil
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar, Protocol

from topodiag.lazy import dataclass
from topodiag.model.errors import InputError

CONNECT_S = 10
"""Seconds for a connection: ssh's own limit is two minutes of TCP."""
GRACE_S = 10.0
"""Beyond connection and capture: the start of Python, sorting and sending."""
FANOUT = 64
"""Nodes at one time: the processes that this host starts for them are the limit, not the network."""


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked of every node. `collector` is the one-file collector, `mark` begins its lines, and all times are in
    seconds: `deadline_s` of a capture, `sample_s` between its two samples. `folder` takes the bundles. `user`,
    `ssh_options`, `image`, `namespace` are for the transports that know them; "" is their own choice."""

    collector: bytes
    mark: str
    deadline_s: float = 20.0
    sample_s: float = 0.0
    fanout: int = FANOUT
    connect_s: int = CONNECT_S
    user: str = ""
    ssh_options: str = ""
    image: str = ""
    namespace: str = ""
    folder: str = ""

    @property
    def node_s(self) -> float:
        """All the time that one node has."""
        return self.connect_s + self.deadline_s + self.sample_s + GRACE_S

    @property
    def arguments(self) -> tuple[str, ...]:
        """Of the collector, but for the node's name."""
        sample = ("--sample", f"{self.sample_s:g}") if self.sample_s else ()
        return ("--send", self.mark, "--deadline", f"{self.deadline_s:g}", *sample)


class Ear(Protocol):
    """Who listens. `node` is "" where one stream carries the lines of many nodes."""

    def begins(self, node: str) -> None: ...

    def hears(self, node: str, line: bytes) -> bool:
        """One line of standard output. False: enough of this node was heard, its channel may be closed."""

    def complains(self, node: str, line: bytes) -> None:
        """One line of standard error."""

    def ends(self, node: str, code: int) -> None: ...

    def late(self, node: str) -> None:
        """The node's time is over."""


class Transport(ABC):
    """One way to the nodes."""

    name: ClassVar[str]
    shares_folder: ClassVar[bool] = False
    """Whether the nodes themselves write into the folder, as whoever they run as."""

    without: ClassVar[str] = ""
    """What to do where this host has no program of that name; "" where none is started."""

    def check(self) -> None:
        """Raise InputError where this host cannot do it at all, before any node is asked."""
        if self.without and shutil.which(self.name) is None:
            raise InputError(self.name, "is not on this machine", hint=self.without)

    @abstractmethod
    def ask(self, request: Request, nodes: Sequence[str], ear: Ear, within_s: float) -> bool:
        """Ask all of them once; return when every one has ended or its time is over. False: `within_s` was over first.
        On KeyboardInterrupt everything that was started is ended, and it is raised again."""
