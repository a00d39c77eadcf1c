"""ssh to every node, by ClusterShell: one command a node, the collector through its standard input."""

from __future__ import annotations

import shutil
from collections.abc import Sequence

from topodiag.fleet.collect.boot import COMMAND, standard_input
from topodiag.fleet.collect.interface import Ear, Request, Transport
from topodiag.model.errors import InputError


class Ssh(Transport):
    """Any site where `ssh NODE` works without a password."""

    name = "ssh"

    def check(self, nodes: Sequence[str]) -> None:
        if shutil.which("ssh") is None:
            raise InputError("ssh", "is not on this machine", hint="install it, or use --via srun, kubectl or share")

    def ask(self, request: Request, nodes: Sequence[str], ear: Ear, within_s: float) -> bool:
        from topodiag.fleet.collect.shell import Listener, run, task_for  # noqa: PLC0415 - slow to load

        task = task_for(request)
        task.set_info("ssh_user", request.user or None)
        task.set_info("ssh_options", request.ssh_options or None)
        # tree=False: gateways of ClusterShell need its installation, and are "not a file transfer feature"
        worker = task.shell(
            COMMAND, nodes=",".join(nodes), handler=Listener(ear), timeout=request.node_s, stderr=True, stdin=True,
            tree=False,
        )  # fmt: skip
        # the channel's end ends the collector: it stays open as long as somebody waits for the bundle
        worker.write(standard_input(request.collector, request.mark, request.arguments))
        return run(task, within_s)
