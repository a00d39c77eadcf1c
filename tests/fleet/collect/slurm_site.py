"""A real Slurm on this machine: slurmctld, munged and four slurmd that call themselves gpu01 to gpu04."""

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

NODES = ("gpu01", "gpu02", "gpu03", "gpu04")
PROGRAMS = ("slurmctld", "slurmd", "munged", "srun", "salloc", "scontrol", "sbcast")
READY_S = 20.0
_CONFIG = """\
ClusterName=topodiag
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={room}/munge.socket
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
TopologyPlugin=topology/tree
ReturnToService=2
MessageTimeout=10
StateSaveLocation={room}/state
SlurmdSpoolDir={room}/%n
SlurmctldPidFile={room}/slurmctld.pid
SlurmdPidFile={room}/%n.pid
SlurmctldLogFile={room}/slurmctld.log
SlurmdLogFile={room}/%n.log
MpiDefault=none
SlurmdParameters=config_overrides
{more}
NodeName=gpu[01-04] NodeHostname={host} NodeAddr=127.0.0.1 Port=[{first}-{last}] CPUs=4
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""
_TOPOLOGY = (
    "SwitchName=leaf1 Nodes=gpu[01-02]\nSwitchName=leaf2 Nodes=gpu[03-04]\nSwitchName=spine Switches=leaf[1-2]\n"
)


def lacking() -> str:
    """Why there can be no such site here, "" where it can be."""
    if os.geteuid() != 0:
        return "needs root"
    missing = [program for program in PROGRAMS if shutil.which(program) is None]
    return f"not installed: {', '.join(missing)}" if missing else ""


@contextmanager
def site(room: Path, more: str = "") -> Iterator[Mapping[str, str]]:
    """The variables with which Slurm's commands reach the site. `more` are lines of slurm.conf."""
    ports = _free_ports(5)
    host = socket.gethostname().partition(".")[0]
    (room / "state").mkdir()
    (room / "topology.conf").write_text(_TOPOLOGY)
    (room / "slurm.conf").write_text(
        _CONFIG.format(host=host, port=ports[0], room=room, more=more, first=ports[1], last=ports[4])
    )
    room.chmod(0o755)
    key = room / "munge.key"
    key.write_bytes(os.urandom(1024))
    key.chmod(0o600)
    env = os.environ | {"SLURM_CONF": str(room / "slurm.conf")}
    files = ("socket", "pid-file:pid", "log-file:log", "seed-file:seed")
    names = [f"--{option}={room}/munge.{tail or option}" for option, _, tail in (file.partition(":") for file in files)]
    started: list[subprocess.Popen[bytes]] = []
    try:
        started.append(subprocess.Popen(["munged", "--force", "--foreground", f"--key-file={key}", *names],
                                        stderr=subprocess.DEVNULL))  # fmt: skip
        _until((room / "munge.socket").exists)
        started.append(subprocess.Popen(["slurmctld", "-D"], env=env, stderr=subprocess.DEVNULL))
        for node in NODES:
            argv = ["slurmd", "-D", "-N", node, "-f", str(room / "slurm.conf")]
            started.append(subprocess.Popen(argv, env=env, stderr=subprocess.DEVNULL))
        _until(lambda: _idle(env) == len(NODES))
        yield env
    finally:
        for process in reversed(started):
            process.send_signal(signal.SIGTERM)
        for process in started:
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _idle(env: Mapping[str, str]) -> int:
    done = subprocess.run(["sinfo", "-h", "-N", "-t", "idle"], env=env, capture_output=True, check=False)
    return len(done.stdout.splitlines())


def _until(ready: object) -> None:
    end = time.monotonic() + READY_S
    while not ready():  # type: ignore[operator]
        if time.monotonic() > end:
            raise RuntimeError("Slurm did not start")
        time.sleep(0.1)


def _free_ports(count: int) -> list[int]:
    """Neighbouring ports that nobody listens on now."""
    for first in range(21000 + os.getpid() % 5000, 32000, count):
        try:
            for port in range(first, first + count):
                with socket.socket() as trial:
                    trial.bind(("127.0.0.1", port))
        except OSError:
            continue
        return list(range(first, first + count))
    raise RuntimeError("no free ports")
