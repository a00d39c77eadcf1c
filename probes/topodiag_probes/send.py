"""Sends a bundle as lines of text, for channels that carry nothing else: ssh, srun, the log of a pod.

Each line is `MARK NODE KIND TEXT`. The mark is a word that only this collection knows, so that banners, prompts and
other programs' output between the lines do no harm; the node's name keeps the lines of many nodes apart where one
stream carries them all. Kinds: `hello` the capture begins (host, boot id, Python); `busy` the items that it waits for,
every few seconds; `data` a piece of the bundle in base64; `end` size, SHA-256, boot id, time and host; `fail` why there
is no bundle. Lines stay below 1024 bytes: srun cuts longer ones, and mixes the pieces.
"""

import base64
import hashlib
import os
import platform
import signal
import sys
import threading
import time
from typing import Any, BinaryIO, Dict

MARK_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")
LINE_BYTES = 540
"""Bytes of the bundle in a line: 720 characters of base64."""
MOST_TEXT = 800
BUSY_S = 2.0
"""Between two lines that name what is waited for. They also notice within this time that nobody reads any more."""
FIRST_BUSY_S = 0.3
"""Before the first of these lines: what stops all of the program at once is named too; a quick capture is silent."""
END_S = 3.0
"""After the other end is gone, what cannot be ended in this time is left to the guard."""


def is_mark(text: str) -> bool:
    return 8 <= len(text) <= 64 and all(letter in MARK_CHARACTERS for letter in text)


def one_word(text: str) -> str:
    """A text as one word of a line: no blank, no control character; `-` for none."""
    kept = "".join(letter if letter.isprintable() and not letter.isspace() else "_" for letter in text)
    return kept[:100] or "-"


class Sender:
    """Writes the lines of one capture to a binary stream. Methods may be called from several threads."""

    def __init__(self, stream: BinaryIO, mark: str, node: str) -> None:
        self._stream = stream
        self._head = ("%s %s " % (mark, one_word(node))).encode("utf-8", "replace")
        self._lock = threading.Lock()
        self._busy = {}  # type: Dict[str, float]
        self._done = threading.Event()

    def hello(self, host: str, boot_id: str) -> None:
        self._say("hello", "%s %s %s" % (one_word(host), one_word(boot_id), platform.python_version()))

    def fail(self, why: str) -> None:
        self._done.set()
        self._say("fail", why)

    def progress(self, event: str, name: str, _seconds: float) -> None:
        """The callback of `capture`: keeps which items are at work."""
        if event == "start":
            self._busy[name] = time.monotonic()
        else:
            self._busy.pop(name, None)

    def watch(self) -> None:
        """Say every few seconds what is waited for, until the bundle is sent. Ends this program where nobody reads."""
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        pause = FIRST_BUSY_S
        while not self._done.wait(pause):
            pause = BUSY_S
            try:
                self.busy()
            except (OSError, ValueError):
                end_this_program()
                return

    def busy(self) -> None:
        names = sorted(dict(self._busy), key=lambda name: self._busy.get(name, 0.0))
        self._say("busy", ",".join(names) or "-")

    def bundle(self, packed: bytes, manifest: Dict[str, Any]) -> None:
        """Send a packed bundle; what was received is good if size and SHA-256 of the last line fit."""
        self._done.set()
        for start in range(0, len(packed), LINE_BYTES):
            self._write(b"data " + base64.b64encode(packed[start : start + LINE_BYTES]) + b"\n")
        words = [str(manifest.get(name) or "") for name in ("boot_id", "time", "host")]
        digest = hashlib.sha256(packed).hexdigest()
        self._say("end", " ".join(["%d" % len(packed), digest] + [one_word(word) for word in words]))

    def _say(self, kind: str, text: str) -> None:
        line = "".join(letter if letter.isprintable() else " " for letter in text)[:MOST_TEXT]
        self._write(("%s %s\n" % (kind, line)).encode("utf-8", "replace")[: MOST_TEXT + 100].rstrip(b"\n") + b"\n")

    def _write(self, line: bytes) -> None:
        with self._lock:
            self._stream.write(self._head + line)
            self._stream.flush()


def end_with_stdin() -> None:
    """End this program when its standard input ends: whoever asked for the bundle holds the other end, and is gone."""
    threading.Thread(target=_wait_for_end, daemon=True).start()


def _wait_for_end() -> None:
    try:
        while os.read(0, 4096):
            pass
    except OSError:
        pass
    end_this_program()


def end_this_program() -> None:
    """Ask the main thread to end what it has started and itself; after a moment end without asking."""
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(END_S)
    sys.stderr = None
    os._exit(128 + signal.SIGTERM)
