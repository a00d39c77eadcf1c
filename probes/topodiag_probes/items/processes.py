"""Processes that have a GPU open: where they may run, and what they told NCCL.

NVML names them; where it does not (containers, no pynvml) those with an open GPU device file are taken, and then which
GPU they use is not known, because CUDA opens them all.
"""

import importlib
import os
import re
from typing import Any, Callable, Dict, List, Optional, Set

from topodiag_probes.interface import Context, Outcome, Probe
from topodiag_probes.items.settings import devices
from topodiag_probes.library import LibraryProbe
from topodiag_probes.reduced import program
from topodiag_probes.tree import Root
from topodiag_probes.variables import kept

Emit = Callable[[str, Any], None]

MAX_PROCESSES = 1024
_GPU_FILE = re.compile(r"/dev/nvidia[0-9]+\Z")
_NODES = ("nvidiactl", "nvidia0", "dxg")


class Processes(LibraryProbe):
    """Processes on the GPUs."""

    id = "processes"
    kind = "processes"
    file = "json/processes.json"
    about = "processes with a GPU open: CPU and memory affinity, NCCL environment"
    needs = "a GPU; pynvml, psutil where there are"
    root_adds = "the environment and affinity of other users' processes"
    keeps = (
        "process id, name of its program, GPUs, processors and NUMA nodes it may use",
        "of its environment the variables of the item settings",
    )
    job = "processes"
    lists = ("processes",)

    def run(self, ctx: Context, end: float, out: Outcome) -> None:
        if ctx.live and not any(ctx.root.exists("dev/" + name) for name in _NODES):
            out.status, out.why = "absent", "no NVIDIA device nodes"
            return
        super().run(ctx, end, out)
        out.needs_root = not ctx.is_root and out.data is not None and b'"error": "denied"' in out.data


def read(emit: Emit, arguments: List[str]) -> None:
    """The worker's job."""
    root = Root()
    by_nvml = _by_nvml()
    found = by_nvml or {pid: set() for pid in _by_files(root)}
    for pid in sorted(found)[:MAX_PROCESSES]:
        emit("processes", describe(root, pid, sorted(found[pid]), bool(by_nvml)))


def _by_nvml() -> Dict[int, Set[int]]:
    """GPUs by the process that has them open, as far as NVML says."""
    users: Dict[int, Set[int]] = {}
    try:
        lib = importlib.import_module("pynvml")
        lib.nvmlInit()
        count = min(int(lib.nvmlDeviceGetCount()), 64)
    except Exception:
        return users
    for index in range(count):
        for function in ("nvmlDeviceGetComputeRunningProcesses", "nvmlDeviceGetGraphicsRunningProcesses"):
            try:
                running = getattr(lib, function)(lib.nvmlDeviceGetHandleByIndex(index))
            except Exception:
                continue
            for each in running:
                users.setdefault(int(each.pid), set()).add(index)
    return users


def _by_files(root: Root) -> List[int]:
    """Processes with a GPU's device file open; without root only one's own can be seen."""
    found = []
    for name in root.names("proc"):
        if not name.isdigit():
            continue
        folder = "proc/%s/fd" % name
        for fd in root.names(folder):
            try:
                target = os.readlink(root.join("%s/%s" % (folder, fd)))
            except OSError:
                continue
            if _GPU_FILE.match(target):
                found.append(int(name))
                break
    return found


def describe(root: Root, pid: int, gpus: List[int], known: bool = True) -> Dict[str, Any]:
    """One process; what cannot be read is said in `error`."""
    record = {"pid": pid, "name": "", "gpus": gpus, "cpus_allowed": "", "mems_allowed": "", "nccl_env": {}, "error": ""}
    status = root.text("proc/%d/status" % pid)
    if not status:
        record["error"] = "gone, or in another process namespace"
        return record
    values = dict(line.split(":", 1) for line in status.split("\n") if ":" in line)
    record["name"] = program(values.get("Name", ""))
    record["cpus_allowed"] = values.get("Cpus_allowed_list", "").strip()
    record["mems_allowed"] = values.get("Mems_allowed_list", "").strip()
    environ = _environ(root, pid)
    if environ is None:
        record["error"] = "denied"
    else:
        record["nccl_env"] = kept(environ, devices(root))
    if not known:
        record["error"] = record["error"] or "found by its open device files; which GPU it uses is not known"
    return record


def _environ(root: Root, pid: int) -> Optional[Dict[str, str]]:
    """A process's environment, by psutil where there is one, else from /proc; None when it is not ours to read."""
    try:
        psutil = importlib.import_module("psutil")
        return dict(psutil.Process(pid).environ())
    except Exception:
        pass  # no psutil, or it may not
    try:
        data = root.read("proc/%d/environ" % pid, 256 * 1024)
    except OSError:
        return None
    entries = [entry.decode("utf-8", "replace") for entry in data.split(b"\0")]
    return dict(entry.split("=", 1) for entry in entries if "=" in entry)


def probes() -> List[Probe]:
    return [Processes()]
