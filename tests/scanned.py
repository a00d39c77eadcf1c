"""Captures read and judged once for all tests of a worker. What is kept is frozen: no test changes another's."""

from functools import cache

from topodiag.app.case.jobs import LogOptions
from topodiag.app.case.opening import one_node
from topodiag.app.logs import logs
from topodiag.app.scan import scan
from topodiag.model.node import Node
from topodiag.model.result import Result


@cache
def node_at(path: str) -> Node:
    """The only node at a path (or `fixture:NAME`), read and not judged."""
    return one_node(path).node


@cache
def scanned(path: str) -> Result:
    """What `topodiag scan` says of one path."""
    return scan([path])


@cache
def logs_at(path: str) -> Result:
    """What `topodiag logs` says of one path."""
    return logs([path], options=LogOptions(workers=1))
