"""Keeps a bundle in a folder that many nodes share: a name that no other capture has, whole or not at all.

The bundles lie in up to 256 folders, because a file system that serves thousands of nodes is slow in one.
"""

import hashlib
import os
import re
from typing import Any, Dict

from topodiag_probes.tree import Root
from topodiag_probes.whole import whole

BOOT_ID = "proc/sys/kernel/random/boot_id"
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]")


def boot_id(root: Root) -> str:
    """This boot's id in the kernel, "" where it is not known."""
    return root.text(BOOT_ID) or ""


def safe(text: str) -> str:
    """A text as part of a file's name."""
    return _UNSAFE.sub("_", text).lstrip(".-")[:120] or "unknown"


def file_name(host: str, boot: str, when: str) -> str:
    """`gpu07-3f2a9c1e-20261122T215947Z.tar.gz`: host, boot and time of a capture."""
    stamp = re.sub(r"[-:]", "", when)
    return "%s-%s-%s.tar.gz" % (safe(host), safe(boot.replace("-", "")[:8] or "noboot"), safe(stamp or "notime"))


def shared_folder(top: str, host: str) -> str:
    """The folder of a host below `top`, one of 256."""
    return os.path.join(top, hashlib.sha256(host.encode("utf-8", "replace")).hexdigest()[:2])


def keep(packed: bytes, manifest: Dict[str, Any], top: str) -> str:
    """Write a packed bundle and its SHA-256 below a folder; the path of the bundle. Raises OSError."""
    host = str(manifest.get("host") or "unknown")
    folder = shared_folder(top, host)
    os.makedirs(folder, exist_ok=True)
    name = file_name(host, str(manifest.get("boot_id") or ""), str(manifest.get("time") or ""))
    path = os.path.join(folder, name)
    digest = hashlib.sha256(packed).hexdigest()
    # The sum first: a bundle that shows is one that can be checked.
    _write(path + ".sha256", ("%s  %s\n" % (digest, name)).encode("ascii", "replace"))
    _write(path, packed)
    return path


def _write(path: str, data: bytes) -> None:
    with whole(path) as handle:
        handle.write(data)
        handle.flush()
        os.fsync(handle.fileno())
