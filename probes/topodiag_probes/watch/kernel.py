"""Xids from the kernel's ring buffer as they are written. Where it cannot be read, there are none, and that is said."""

import os
import re
import stat
from typing import Dict, List, Optional, Tuple

from topodiag_probes.tree import Root

KMSG = "dev/kmsg"
MAX_READS = 500
"""Records of one turn: a driver in trouble writes thousands a second, and they are all alike."""
RECORD = 8192
"""Bytes of the longest record (CONSOLE_EXT_LOG_MAX of the kernel)."""
AGAIN_S = 300.0
"""The same Xid of the same GPU is one event for this long: a driver repeats itself."""
MAX_KNOWN = 1000
_XID = re.compile(r"NVRM: Xid \((?:PCI:)?([0-9A-Fa-f:.]{1,40})[^)]{0,60}\): ([0-9]{1,5})\b[^\n]{0,160}")


class Event:
    """One Xid: the GPU's bus id as the driver writes it, the code, the line."""

    def __init__(self, part: str, code: int, text: str) -> None:
        self.part = part
        self.code = code
        self.text = text


class Kernel:
    """Reads what is new since it was opened."""

    def __init__(self, root: Root) -> None:
        self.handle: Optional[int] = None
        self.why = ""
        self._known: Dict[Tuple[str, int], float] = {}
        try:
            self.handle = os.open(root.join(KMSG), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
            if stat.S_ISFIFO(os.fstat(self.handle).st_mode):
                raise OSError(0, "a pipe")
            os.lseek(self.handle, 0, os.SEEK_END)
        except OSError as error:
            self.why = error.strerror or str(error)
            self.close()

    def close(self) -> None:
        if self.handle is not None:
            os.close(self.handle)
            self.handle = None

    def news(self, now: float) -> List[Event]:
        """The Xids since the last call; `now` is monotonic."""
        found: List[Event] = []
        for _ in range(MAX_READS):
            record = self._record()
            if record is None:
                break
            found.extend(self._events(record.decode("utf-8", "replace"), now))
        return found

    def _record(self) -> Optional[bytes]:
        """One record of the device, or the next piece of a file; None where there is nothing new."""
        if self.handle is None:
            return None
        try:
            return os.read(self.handle, RECORD) or None
        except BrokenPipeError:
            return b""  # EPIPE: records were overwritten before they were read; the next read goes on behind them
        except OSError:
            return None

    def _events(self, text: str, now: float) -> List[Event]:
        found = []
        for match in _XID.finditer(text):
            key = (match.group(1).lower(), int(match.group(2)))
            before = self._known.get(key)
            if before is not None and now - before < AGAIN_S:
                continue
            if len(self._known) >= MAX_KNOWN:
                self._known.clear()
            self._known[key] = now
            found.append(Event(key[0], key[1], match.group(0)))
        return found
