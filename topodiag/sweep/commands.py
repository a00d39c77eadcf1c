"""A run as the argument lists that start it: srun, mpirun, or this machine alone. No shell ever reads them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from topodiag.lazy import dataclass
from topodiag.sweep.values import SweepPlan, SweepRun
from topodiag.words.own_data import own_data, patterns

LAUNCHERS = ("srun", "mpirun", "none")
IB_WRITE_BW = "ib_write_bw"
ITERATIONS, WARM_UP = 20, 5
"""nccl-tests' own number of iterations; five warm-up iterations, because versions differ (1 since 2.16.8)."""
IB_BYTES = 1 << 20
"""Large enough for the wire's rate, small enough for any NIC's memory (perftest's own default is 64 KiB)."""
IB_SECONDS = 5


@dataclass(frozen=True, slots=True)
class Command:
    """`argv` starts the run. `server` is started before it and ended after it (ib_write_bw listens on one node)."""

    argv: tuple[str, ...]
    server: tuple[str, ...] = ()


def command(plan: SweepPlan, run: SweepRun) -> Command:
    """The command of a run; the benchmark is called by its name, as it stands in the plan."""
    if run.program == IB_WRITE_BW:
        return _write_bw(plan, run)
    env = _env(plan, run)
    gpus = len(run.gpus) if plan.launch.launcher == "none" else 1  # without a launcher one process has all GPUs
    arguments = (
        "-b", str(run.min_bytes), "-e", str(run.max_bytes), "-f", "2", "-g", str(gpus), "-n", str(ITERATIONS),
        "-w", str(WARM_UP), "-c", "1",
    )  # fmt: skip
    return Command((*_launcher(plan, run.nodes, len(run.gpus)), *_with_env(env), run.program, *arguments))


def _launcher(plan: SweepPlan, nodes: tuple[str, ...], per_node: int) -> tuple[str, ...]:
    ranks, extra = len(nodes) * per_node, plan.launch.arguments
    match plan.launch.launcher:
        case "srun":
            # --overlap: two runs on different GPUs of one node, and the step that this program itself is in (20.11+).
            return (
                "srun", f"--nodes={len(nodes)}", f"--ntasks={ranks}", f"--ntasks-per-node={per_node}",
                f"--nodelist={','.join(nodes)}", "--kill-on-bad-exit=1",
                "--overlap", *extra,
            )  # fmt: skip
        case "mpirun":
            hosts = ",".join(f"{node}:{per_node}" for node in nodes)
            return ("mpirun", "-np", str(ranks), "--host", hosts, *extra)
        case _:
            return ()


def _env(plan: SweepPlan, run: SweepRun) -> dict[str, str]:
    env = dict(plan.launch.env)
    if len(run.gpus) < plan.fabric.gpus:
        env["CUDA_VISIBLE_DEVICES"] = ",".join(map(str, run.gpus))
    if run.rail is not None and plan.fabric.nic(run.rail):
        env["NCCL_IB_HCA"] = f"={plan.fabric.nic(run.rail)}"  # "=": this very name, not all that begin with it
    if run.algorithm:
        env["NCCL_ALGO"] = run.algorithm
    if run.protocol:
        env["NCCL_PROTO"] = run.protocol
    return env


def _with_env(env: Mapping[str, str]) -> tuple[str, ...]:
    """By env(1): both launchers pass it on alike, and srun's --export would split values at their commas."""
    return ("env", *(f"{name}={value}" for name, value in sorted(env.items()))) if env else ()


def _write_bw(plan: SweepPlan, run: SweepRun) -> Command:
    """perftest: a server on the first node, a client on the second, both directions at once."""
    nic = plan.fabric.nic(run.rail or 0)
    device = ("-d", nic) if nic else ()
    options = (*device, "-b", "-F", "--report_gbits", "-s", str(IB_BYTES), "-D", str(IB_SECONDS))
    server, client = run.nodes
    env = _with_env(plan.launch.env)
    return Command(
        (*_launcher(plan, (client,), 1), *env, run.program, *options, server),
        (*_launcher(plan, (server,), 1), *env, run.program, *options),
    )


_TAKES: Mapping[str, Mapping[str, int]] = own_data("sweep/launchers")["takes"]
_LIKE = patterns("sweep/launchers", "patterns")
"""Both as launchers.toml describes them."""


def refuse_arguments(launcher: str, words: Sequence[str]) -> str:
    """Why these arguments would start something else than a benchmark, "" where they would not."""
    takes = _TAKES.get(launcher, {})
    rest = list(reversed(words))
    while rest:
        word = rest.pop()
        name, joined, value = word.partition("=")
        if not _LIKE["option"].fullmatch(word):
            return f"{word[:40]!r} is no option of {launcher}, and would be started as a program"
        if _LIKE["runs"].fullmatch(name):
            return f"{name} names a program or a file of options"
        if joined and "mca" in name and _LIKE["agent"].search(value):
            return f"{word[:40]!r} names a program"
        values = [rest.pop() for _ in range(min(takes.get(name, 0), len(rest))) if not joined]
        if "mca" in name and values and _LIKE["agent"].search(values[0]):
            return f"{name} {values[0][:40]} names a program"
    return ""


def refuse_environment(env: Mapping[str, str]) -> str:
    """Why this environment would load code, "" where it would not."""
    loads = next((name for name in env if _LIKE["loads"].fullmatch(name)), None)
    return f"the variable {loads} loads code into what is started" if loads is not None else ""
