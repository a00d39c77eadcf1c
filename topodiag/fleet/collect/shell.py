"""ClusterShell's events as an ear hears them: lines of output, ends, and nodes whose time is over."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

from ClusterShell.Event import EventHandler
from ClusterShell.Task import Task, task_self
from ClusterShell.Worker.Ssh import WorkerSsh

from topodiag.fleet.collect.interface import Ear, Request

MAX_LINE = 1 << 16
"""Bytes without an end of line that are kept: a line of the collector has less than 1024."""


class Listener(EventHandler):  # type: ignore[misc]
    """Passes the events of a worker on."""

    def __init__(self, ear: Ear) -> None:
        self._ear = ear

    def ev_pickup(self, worker: Any, node: Any) -> None:
        self._ear.begins(str(node))

    def ev_read(self, worker: Any, node: Any, sname: str, msg: bytes) -> None:
        if sname == worker.SNAME_STDERR:
            self._ear.complains(str(node), msg)
        elif not self._ear.hears(str(node), msg):
            _end(worker, node)

    def ev_hup(self, worker: Any, node: Any, rc: int) -> None:
        self._ear.ends(str(node), rc)

    def ev_close(self, worker: Any, timedout: bool) -> None:
        if timedout and hasattr(worker, "iter_keys_timeout"):
            for key in worker.iter_keys_timeout():
                self._ear.late(str(key))


def _end(worker: Any, node: Any) -> None:
    """End the channel of one node: what it still sends is not wanted."""
    for client in worker._engine_clients():  # abort() of the worker would end all nodes
        if client.key == node:
            client.abort()


class _End(EventHandler):  # type: ignore[misc]
    """Ends the task of the timer that it listens to."""

    over = False

    def ev_timer(self, timer: Any) -> None:
        self.over = True
        task_self().abort()


class _Client(WorkerSsh.SHELL_CLASS):  # type: ignore[misc]
    """ssh to one node, of whose output no line is kept that has no end: ClusterShell would keep all of it."""

    def _readlines(self, sname: str) -> Iterator[bytes]:
        yield from super()._readlines(sname)
        stream = self.streams.get(sname)
        if stream is not None and len(stream.rbuf) > MAX_LINE:
            yield stream.rbuf
            stream.rbuf = b""


class Ssh(WorkerSsh):  # type: ignore[misc]
    """ssh to many nodes."""

    SHELL_CLASS = _Client


def task_for(request: Request) -> Task:
    """This thread's task, which keeps no output: the ear takes it."""
    logging.getLogger("ClusterShell").setLevel(logging.CRITICAL)  # a node that dies is told by its answer
    task = task_self()
    for name, value in (("fanout", request.fanout), ("connect_timeout", request.connect_s)):
        task.set_info(name, value)
    task.set_default("distant_worker", Ssh)
    task.set_default("stdout_msgtree", False)
    task.set_default("stderr_msgtree", False)
    return task


def run(task: Task, within_s: float) -> bool:
    """Run what was given to the task. False: the time was over first, and what still ran was ended."""
    end = _End()
    # a limit of the task itself, where it is the shorter one, would drop those of its nodes and the nodes with them
    task.timer(max(within_s, 0.1), end, autoclose=True)
    try:
        task.resume()
    except BaseException:
        task.abort()
        raise
    return not end.over
