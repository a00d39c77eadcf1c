"""A dask cluster: tasks carry paths, and workers read the files themselves."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from topodiag.fleet.cores import cpus
from topodiag.model.errors import TopodiagError

_Task = TypeVar("_Task")
_Result = TypeVar("_Result")
LOCAL, SLURM = "local", "slurm"
_CONNECT_S = 10
_ANY_PORT = ":0"
"""For dask's own pages, which nobody is told of: at its usual port another cluster may be, which dask warns of."""


def _library() -> Any:
    try:
        import distributed  # noqa: PLC0415 - an extra, and slow to load
    except ImportError:
        raise TopodiagError("dask is not installed", hint="pip install 'topodiag[fleet]'") from None
    return distributed


@contextlib.contextmanager
def _client(where: str, workers: int | None) -> Iterator[Any]:
    distributed = _library()
    with contextlib.ExitStack() as stack:
        if where in (LOCAL, SLURM):
            cluster = _local(workers or cpus(), distributed) if where == LOCAL else _slurm(workers)
            yield stack.enter_context(distributed.Client(stack.enter_context(cluster)))
        else:
            try:
                client = distributed.Client(where, timeout=_CONNECT_S)
            except Exception as error:  # noqa: BLE001 - what answers may be no scheduler: a dashboard, a proxy
                why = str(error) if isinstance(error, OSError | ValueError) else "what answers speaks otherwise"
                raise TopodiagError(
                    f"no dask scheduler answers at {where}: {why}",
                    hint="give its address as tcp://HOST:8786, or `local`, or `slurm`",
                ) from None
            yield stack.enter_context(client)


def _local(count: int, distributed: Any) -> Any:
    """Workers as processes of this machine."""
    try:
        return distributed.LocalCluster(
            n_workers=count, threads_per_worker=1, processes=True, dashboard_address=_ANY_PORT, silence_logs=50
        )
    except Exception as error:  # noqa: BLE001 - a worker that is killed while it starts: RuntimeError, of its nanny
        raise TopodiagError(
            f"the workers of dask did not start: {error}",
            hint="is there memory for them? --workers N asks for fewer, and without --dask none are needed",
        ) from None


def _slurm(workers: int | None) -> Any:
    """Resources (partition, account, memory, wall time) are those of dask-jobqueue's own configuration."""
    try:
        import dask_jobqueue  # noqa: PLC0415
    except ImportError:
        raise TopodiagError(
            "--dask slurm needs dask-jobqueue, which is not installed", hint="pip install dask-jobqueue"
        ) from None
    import dask  # noqa: PLC0415

    options = {"dashboard_address": _ANY_PORT, **(dask.config.get("jobqueue.slurm.scheduler-options", {}) or {})}
    try:
        cluster = dask_jobqueue.SLURMCluster(scheduler_options=options)
        cluster.scale(jobs=workers or 4)
    except Exception as error:  # noqa: BLE001 - of its configuration or of sbatch, all alike to the user
        raise TopodiagError(
            f"no workers could be asked of Slurm: {error}",
            hint="describe them in ~/.config/dask/jobqueue.yaml: queue, account, cores, memory, walltime",
        ) from None
    return cluster


def map_dask(
    work: Callable[[_Task], _Result], tasks: Sequence[_Task], where: str, workers: int | None
) -> Iterator[_Result]:
    """What `work` makes of each task, in their order, on `local`, `slurm`, or the scheduler at this address. Raises
    TopodiagError with the way out."""
    with _client(where, workers) as client:
        futures = [client.submit(work, task, pure=False) for task in tasks]
        while futures:
            yield _result(futures.pop(0))  # one that was read is forgotten by the cluster


def _result(future: Any) -> Any:
    """What came of a task, once it has ended."""
    try:
        return future.result()
    except TopodiagError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever went wrong in a worker, or with it
        raise TopodiagError(
            f"a worker of the cluster failed: {type(error).__name__}: {error}",
            hint="do the workers run the same versions of topodiag and numpy? their logs say more",
        ) from None
