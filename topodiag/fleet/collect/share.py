"""A folder that all nodes see: whoever can start programs there runs one command, and the bundles come from it.

For sites that have their own way to run a command everywhere: Ansible, a cron job, a boot script. The nodes write below
`incoming/`, spread over 256 folders, whole or not at all; what came is checked like all else.
"""

from __future__ import annotations

import hashlib
import io
import time
from collections.abc import Sequence
from pathlib import Path

from topodiag.fleet.collect.interface import Ear, Request, Transport
from topodiag.fleet.collect.lines import MAX_BUNDLE
from topodiag.model.errors import InputError
from topodiag.words.hosts import short_name
from topodiag.writing import replacing
from topodiag_probes.keep import safe
from topodiag_probes.send import Sender

COLLECTOR, INCOMING = "topodiag-probe.pyz", "incoming"
POLL_S = 1.0


class Share(Transport):
    """Waits for the bundles that nodes write into `Request.folder`."""

    name = "share"
    shares_folder = True

    def ask(self, request: Request, nodes: Sequence[str], ear: Ear, within_s: float) -> bool:
        top, end = Path(request.folder), time.monotonic() + within_s
        (top / INCOMING).mkdir(exist_ok=True)
        _check_ours(top / COLLECTOR, request.collector)
        with replacing(str(top / COLLECTOR)) as stream:
            stream.write(request.collector)
        waiting = {short_name(safe(node)): node for node in nodes}
        for node in nodes:
            ear.begins(node)
        while True:
            for path in sorted((top / INCOMING).glob("*/*.tar.gz")):
                host = short_name(path.name.rsplit("-", 2)[0])
                if host in waiting and _play(path, request.mark, waiting[host], ear):
                    del waiting[host]
            if not waiting:
                return True
            if time.monotonic() > end:
                return False
            time.sleep(POLL_S)


def command(folder: str, request: Request) -> str:
    """What every node has to run."""
    top = Path(folder).absolute()
    return f"python3 {top / COLLECTOR} --into {top / INCOMING} --deadline {request.deadline_s:g} --jitter 5"


def _check_ours(path: Path, collector: bytes) -> None:
    """Raise InputError where another program's file has the name of the collector."""
    start = collector[: collector.find(b"\n") + 3]  # the interpreter's line, and the sign of a zip archive
    if path.exists() and not path.read_bytes().startswith(start):
        raise InputError(str(path), "is not topodiag's collector, and would be written over", hint="move it away")


def _play(path: Path, mark: str, node: str, ear: Ear) -> bool:
    """Hand a bundle to the ear as its node would have sent it, and take it out of the folder. False: it is not whole
    yet."""
    try:
        with path.open("rb") as stream:
            data = stream.read(MAX_BUNDLE + 1)
        digest = Path(f"{path}.sha256").read_text(encoding="ascii", errors="replace")[:64]
    except OSError:
        return False
    if hashlib.sha256(data).hexdigest() != digest:
        return False
    lines = io.BytesIO()
    host, boot, when = path.name.removesuffix(".tar.gz").rsplit("-", 2)
    stamp = f"{when[:4]}-{when[4:6]}-{when[6:11]}:{when[11:13]}:{when[13:]}" if len(when) == 16 else ""
    Sender(lines, mark, node).bundle(data, {"host": host, "boot_id": _padded(boot), "time": stamp})
    for line in lines.getvalue().splitlines():
        ear.hears(node, line)
    for file in (path, Path(f"{path}.sha256")):
        file.unlink(missing_ok=True)
    return True


def _padded(boot: str) -> str:
    """The first eight letters of a boot id, which a file's name has, in the form of a whole one."""
    return f"{boot}-0000-0000-0000-000000000000" if len(boot) == 8 and boot.isalnum() and boot != "noboot" else ""
