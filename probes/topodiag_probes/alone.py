"""One capture at a time on a node: two would wait for the same driver, and a third for both."""

import errno
import socket
import time
from typing import Callable, Optional

LOCK = b"\0topodiag-probe"
"""An abstract socket: it needs no disk, and the kernel frees it with the process, however that ends."""
LOOK_S = 0.2


def alone(wait_s: float, sleep: Callable[[float], None] = time.sleep) -> Optional[socket.socket]:
    """Hold the lock of captures on this node, after waiting for another capture at most so long. The lock lasts as long
    as the socket. None: another capture still runs. Where the kernel has no such sockets everybody is alone."""
    end = time.monotonic() + wait_s
    held = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    while True:
        try:
            held.bind(LOCK)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                return held
        else:
            return held
        if time.monotonic() >= end:
            held.close()
            return None
        sleep(LOOK_S)
