"""What to ask Slurm for, so that it gives the nodes of a map: sbatch's --nodelist, --switches and --segment."""

from __future__ import annotations

import numpy as np

from topodiag.emit.place_map import check
from topodiag.emit.rank_files import Written
from topodiag.model.place_map import PlaceMap
from topodiag.words.fold import fold_hosts

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
