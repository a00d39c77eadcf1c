"""Files that put ranks on hosts, one per launcher, each with the command that reads it and what to beware of.

Formats: Slurm's sbatch and srun pages (SLURM_HOSTFILE, --distribution=arbitrary), Open MPI 5's "Scheduling processes
across hosts" and PRRTE's rankfile (src/mca/rmaps/rank_file: hosts are those of the allocation, no binding with
--bind-to none), MPICH's Hydra guide, Intel MPI's "Global Hydra Options" (-machinefile against -f), PyTorch's torchrun
page and torch/distributed/elastic.
"""

from __future__ import annotations

import json

import numpy as np

from topodiag.emit.place_map import UnwritableMapError, check, misnumbered
from topodiag.lazy import dataclass
from topodiag.model.cluster import PlaceMap
from topodiag.words.units import first_of, fold_hosts

MASTER_PORT = 29500
"""torchrun's default."""


HOSTS_NAMED = 4


@dataclass(frozen=True, slots=True)
class Written:
    """The text of a file, the command that uses it (`FILE` is its name), and sentences for the reader."""

    text: str
    command: str = ""
    notes: tuple[str, ...] = ()


def slurm_hostfile(place: PlaceMap) -> Written:
    """One host per task, in the order of the ranks. Any map can be said so."""
    _start(place)
    counts = np.unique(place.per_host)
    tasks = f" --ntasks-per-node={counts[0]}" if counts.size == 1 else ""
    command = f"SLURM_HOSTFILE=FILE srun -n {place.ranks} -N {len(place.hosts)}{tasks} --distribution=arbitrary PROGRAM"
    text = "".join(f"{place.hosts[host]}\n" for host in place.host.tolist())
    return Written(text, command, _notes(place, "the allocation must hold these hosts: srun fails for any other"))


def rankfile(place: PlaceMap) -> Written:
    """`rank N=host slot=K`, K the local rank. Any map can be said so."""
    _start(place)
    lines = [
        f"rank {rank}={place.hosts[host]} slot={local}\n"
        for rank, (host, local) in enumerate(zip(place.host.tolist(), place.local.tolist(), strict=True))
    ]
    command = f"mpirun -n {place.ranks} --map-by rankfile:file=FILE --bind-to none PROGRAM"
    notes = (
        f"the hosts have to be in the allocation; where no scheduler gives one, add {_host_option(place)}",
        "slots are cores, not GPUs; Open MPI 4 (mpirun -rf FILE) binds each rank to the one core of its slot",
    )
    return Written("".join(lines), command, _notes(place, *notes))


def _host_option(place: PlaceMap) -> str:
    """How mpirun is told of its hosts: by name where they are few."""
    if len(place.hosts) > HOSTS_NAMED:
        return "--hostfile with a line per host: NAME slots=RANKS"
    return "--host " + ",".join(_counted(place, "{}:{}"))


def hostfile(place: PlaceMap) -> Written:
    """Open MPI's `host slots=K`. Raises UnwritableMapError for ranks of a host that do not follow one another."""
    _in_blocks(place, "hostfile")
    # Bound to a core each, as mpirun does by itself, ranks leave none to NCCL's threads and the data loaders.
    command = f"mpirun -n {place.ranks} --hostfile FILE --map-by slot --bind-to none PROGRAM"
    return Written("".join(_counted(place, "{} slots={}\n")), command, _notes(place))


def mpich_hostfile(place: PlaceMap) -> Written:
    """MPICH's and Intel MPI's `host:K`. Raises UnwritableMapError as `hostfile`."""
    _in_blocks(place, "hostfile")
    intel = f"Intel MPI: mpiexec -n {place.ranks} -machinefile FILE; its -f takes each host once and ignores the counts"
    command = f"mpiexec -n {place.ranks} -f FILE PROGRAM"
    return Written("".join(_counted(place, "{}:{}\n")), command, _notes(place, intel))


def torchrun(place: PlaceMap) -> Written:
    """The node rank of each host. Raises UnwritableMapError as `hostfile`."""
    _in_blocks(place, "list of node ranks")
    lines = [f"{number} {host}\n" for number, host in enumerate(place.hosts)]
    counts = np.unique(place.per_host)
    tasks = str(counts[0]) if counts.size == 1 else "GPUS"
    command = (
        f"torchrun --nnodes={len(place.hosts)} --nproc-per-node={tasks} --node-rank=N --master-addr={place.hosts[0]}"
        f" --master-port={MASTER_PORT} PROGRAM"
    )
    notes = [
        "start it on every host with that host's N; with --rdzv-backend=c10d the hosts are sorted anew by their address"
        " and this order is lost"
    ]
    if counts.size > 1:
        shown = first_of(_counted(place, "{}: {}"), 4)
        notes.append(f"hosts run different numbers of processes ({shown}): give each its own --nproc-per-node")
    return Written("".join(lines), command, _notes(place, *notes))


def _counted(place: PlaceMap, form: str) -> list[str]:
    """Each host with the number of its ranks, in this form."""
    return list(map(form.format, place.hosts, place.per_host.tolist()))


def _start(place: PlaceMap) -> None:
    check(place)
    if int(place.per_host.sum()) != place.ranks or int(place.per_host.min()) < 1:
        raise UnwritableMapError("the map names hosts without ranks")


def _in_blocks(place: PlaceMap, what: str) -> None:
    _start(place)
    back = np.flatnonzero(np.diff(place.host) < 0) + 1  # hosts are numbered by their first ranks
    if back.size:
        rank = int(back[0])
        raise UnwritableMapError(
            f"a {what} fills host after host, and rank {rank} goes back to {place.hosts[place.host[rank]]}",
            hint="slurm-hostfile and rankfile take any order; other launchers need RANK set per process",
        )


def _notes(place: PlaceMap, *more: str) -> tuple[str, ...]:
    return tuple(note for note in (*more, misnumbered(place)) if note)


_INNERMOST = ("leaf", "switch", "rack")
_BLOCK = ("nvlink", "block")


def slurm_flags(place: PlaceMap) -> Written:
    """Flags for sbatch or salloc, one per line. `--switches` where the leaves are known, `--segment` (Slurm 23.11,
    topology/block) where the nodes fill NVLink domains or blocks in equal parts."""
    check(place)
    nodes = len(place.hosts)
    counts = np.unique(place.per_host)
    flags = [f"--nodes={nodes}", f"--ntasks={place.ranks}"]
    if counts.size == 1:
        flags += [f"--ntasks-per-node={counts[0]}", f"--gpus-per-node={counts[0]}"]
    flags.append(f"--nodelist={fold_hosts(place.hosts)}")
    levels = dict(place.levels)
    leaf = next((levels[kind] for kind in _INNERMOST if kind in levels), 0)
    block = next((levels[kind] for kind in _BLOCK if kind in levels), 0)
    notes = []
    if leaf:
        flags.append(f"--switches={leaf}")
        notes.append("--switches is a wish: Slurm gives up on it after SchedulerParameters=max_switch_wait (300 s)")
    if block and nodes % block == 0 and nodes // block > 1:
        flags.append(f"--segment={nodes // block}")
    if counts.size > 1:
        notes.append("hosts take different numbers of tasks: srun needs the slurm-hostfile of this map")
    return Written("".join(f"{flag}\n" for flag in flags), "", tuple(notes))


def index_map(place: PlaceMap) -> Written:
    """An index map for Kubernetes: the pod of each completion index of an indexed Job, JobSet or MPIJob, and its node.
    One pod per host with its ranks and GPUs, in the order of their first ranks."""
    check(place)
    order = np.argsort(place.host, kind="stable")
    members = np.split(order, np.cumsum(place.per_host)[:-1])
    pods = [
        {
            "index": number,
            "node": host,
            "nodeSelector": {"kubernetes.io/hostname": host},
            "ranks": ranks.tolist(),
            "gpus": place.gpu[ranks].tolist() if (place.gpu[ranks] >= 0).all() else None,
        }
        for number, (host, ranks) in enumerate(zip(place.hosts, members, strict=True))
    ]
    lines = ",\n".join(json.dumps(pod) for pod in pods)
    notes = ["a Job has one nodeSelector for all its indices: pin each index by a replicated job of one pod, or by a"
             " scheduler that reads this map"]  # fmt: skip
    if not place.consecutive:
        notes.append("ranks of a pod do not follow one another: set RANK per process from the map, not from the index")
    return Written(f'{{"ranks": {place.ranks}, "pods": [\n{lines}\n]}}\n', "", tuple(notes))
