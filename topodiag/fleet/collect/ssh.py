"""ssh to every node: one ssh a node, the collector through its standard input."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence

from topodiag.fleet.collect.boot import COMMAND, standard_input
from topodiag.fleet.collect.interface import Ear, Request, Transport
from topodiag.fleet.collect.processes import Job, Pump


class Ssh(Transport):
    """Any site where `ssh NODE` works without a password."""

    name = "ssh"
    without = "install it, or use --via srun, kubectl or share"

    def ask(self, request: Request, nodes: Sequence[str], ear: Ear, within_s: float) -> bool:
        # The channel's end ends the collector: it stays open as long as somebody waits for the bundle.
        given = standard_input(request.collector, request.mark, request.arguments)
        ssh = launcher(request)
        jobs = [Job(node, (*ssh, node, COMMAND), given) for node in nodes]
        return Pump(ear, request.fanout, request.node_s).run(jobs, within_s)


def launcher(request: Request) -> tuple[str, ...]:
    """ssh that asks for no password. Of an option that is given twice ssh takes the first: the user's own."""
    own = map(os.path.expanduser, shlex.split(request.ssh_options))
    user = ("-l", request.user) if request.user else ()
    fixed = ("-oForwardAgent=no", "-oForwardX11=no", f"-oConnectTimeout={request.connect_s}", "-oBatchMode=yes")
    return ("ssh", *own, *fixed, *user)
