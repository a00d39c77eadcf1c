"""Faults that a node's evidence shows by the words of others alone: checks of jobs look for them themselves, and
`checks/reported.py` adds what lines of tools say of a node."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Never

from topodiag.checks.interface import NodeCheck, OneStep
from topodiag.model.finding import Outcome
from topodiag.model.node import Node


class ToldOnly(OneStep[Node], NodeCheck[Never]):
    """A check that finds nothing itself."""

    def judge(self, node: Node, peers: Sequence[Node] = ()) -> Outcome:
        return self.not_applicable(node, "jobs show it: no line of a tool tells of it here")


class SocketsTold(ToldOnly):
    """NET001 by the word of a tool: it takes sockets, as RDMA does not work."""

    id = "NET001"
    title = "sockets in place of RDMA, by the word of a tool"


class PeerUnreachedTold(ToldOnly):
    """NET002 by the word of ping, netcat, ip or a person: a peer is not reached."""

    id = "NET002"
    title = "a peer is not reached, by the word of a tool"


class PluginTold(ToldOnly):
    """NET005 by the dynamic linker: the network plug-in lacks a library."""

    id = "NET005"
    title = "the network plug-in lacks a library, by the word of ldd"


class RdmaSetupTold(ToldOnly):
    """NET008 by the word of a tool: partition, GID or subnet manager are not as queue pairs need them."""

    id = "NET008"
    title = "queue pairs cannot be connected, by the word of a tool"


class SlowPairsTold(ToldOnly):
    """BEN005 by a list of pairs of hosts: some carry far less than the others."""

    id = "BEN005"
    title = "pairs of hosts that carry far less than others of a list"
