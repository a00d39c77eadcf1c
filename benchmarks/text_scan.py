"""Prints what texts of each kind cost to read, beside `grep -c` and a plain loop over the lines, in one run.

    python benchmarks/text_scan.py [--checkout FOLDER] [--scale 1.0] [--only NAME,..] [--repeat 1]

CPU seconds of the whole program; MB per CPU second; ratio to the plain loop, which searches each line for one word with
`re`. Of both the start is taken off, which is a run over the first thousand lines of the same text. Each way runs as
its own process. `--checkout` measures another checkout with the same texts: before and after a change in one run.
`--scale 0.1` makes all texts a tenth of their size. With `--repeat` the fastest of so many runs counts, on both sides,
for a machine that others use too.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from make_log import rank_lines

ROOT = Path(__file__).resolve().parents[1]
PREFIXES = {
    "bare": "", "mpirun": "[1,{rank}]<stdout>:", "srun": "{rank:3d}: ", "torchrun": "[rank{rank}]: ",
    "ray": "(RayWorker pid=40{rank}, ip=10.0.0.{rank}) ", "pods": "[pod/train-{rank}/main] ",
    "container": "2026-03-01T11:00:01.123456789Z stdout F ",
}  # fmt: skip
LOOP = "import re,sys\nfound=re.compile('rror').search\nprint(sum(1 for line in open(sys.argv[1]) if found(line)))"
ENOUGH = {"training": 1.5, "steps": 1.5, "kernel": 2.0, "unknown": 0.3, "small 5,000": 3.0, "small 20,000": 6.0}
"""CPU seconds beyond the start that are the aim, at full scale."""
ONE_WORKER = ("--workers", "1")
FIRST = 1e-6
"""The scale of a text that has its first thousand lines."""
COMPILED = os.path.join(tempfile.gettempdir(), "topodiag-text-scan")
STARTS = {"one line": 0.4, "bundle": 0.25}


@dataclass(frozen=True)
class Case:
    """A text by name: its size in MB, its lines, and the command that reads it."""

    name: str
    size_mb: float
    lines: Callable[[random.Random], Iterator[str]]
    command: str = "diagnose"


def training(dice: random.Random) -> Iterator[str]:
    """A job's output: few steps, much else, as frameworks print it."""
    step = 0
    while True:
        step += 1
        yield steps_line(dice, step)
        for rank in range(8):
            yield f"[rank{rank}]: memory allocated {dice.random() * 80:.2f} GiB, reserved {dice.random() * 80:.2f} GiB"
            yield f"INFO:data.loader:worker {rank} opened shard-{dice.randrange(10**6):06d}.tar"
        yield f"(min, max) time across ranks (ms): forward-backward: ({dice.random() * 900:.2f}, 912.14)"
        if step % 50 == 0:
            yield "torch/utils/data/sampler.py:12: UserWarning: the array is not writable"
            yield f"successfully saved checkpoint from iteration {step:7d} to /ckpt [ t 1/8, p 1/4 ]"


def steps(dice: random.Random) -> Iterator[str]:
    """Nothing but steps: each line is one of Megatron's."""
    step = 0
    while True:
        step += 1
        yield steps_line(dice, step)


def steps_line(dice: random.Random, step: int) -> str:
    clock = f"2026-03-01 {step // 3600 % 24:02d}:{step // 60 % 60:02d}:{step % 60:02d}"
    return (
        f" [{clock}] iteration {step:8d}/  500000 | consumed samples: {step * 256:12d} | "
        f"elapsed time per iteration (ms): {1234 + 50 * dice.random():.1f} | "
        f"throughput per GPU (TFLOP/s/GPU): {400 + 20 * dice.random():.1f} | "
        f"learning rate: 1.5E-04 | global batch size:   256 | lm loss: {2 + dice.random():.6E} | loss scale: 1.0 | "
        f"grad norm: {dice.random():.3f} | number of skipped iterations:   0 | number of nan iterations:   0 |"
    )


def kernel(dice: random.Random) -> Iterator[str]:
    at = 0.0
    talk = (
        "usb 1-1: new high-speed USB device number {n} using xhci_hcd", "nvidia-nvswitch3: open (major=510)",
        "mlx5_core 0000:{n:02x}:00.0: firmware version: 28.39.2048", "audit: type=1400 ({n}): allowed",
        "docker0: port {n}(veth{n:x}) entered forwarding state", "perf: interrupt took too long ({n} > 2500)",
    )  # fmt: skip
    while True:
        at += dice.random()
        yield f"[{at:12.6f}] " + dice.choice(talk).format(n=dice.randrange(200))


def unknown(dice: random.Random) -> Iterator[str]:
    words = (
        "quick",
        "brown",
        "fox",
        "jumps",
        "over",
        "lazy",
        "dog",
        "rain",
        "falls",
        "green",
        "hills",
        "rivers",
        "run",
    )
    while True:
        yield " ".join(dice.choices(words, k=14)) + "."


def mixed(prefix: str) -> Callable[[random.Random], Iterator[str]]:
    """NCCL's lines as ranks print them, each behind what a launcher puts before it."""

    def lines(dice: random.Random) -> Iterator[str]:
        turn = 0
        while True:
            for rank in range(64):
                head = prefix.format(rank=rank)
                for line in rank_lines(rank, 8, dice, turn):
                    yield head + line
            turn += 1

    return lines


CASES = (
    Case("training", 40, training), Case("steps", 40, steps), Case("kernel", 50, kernel), Case("unknown", 10, unknown),
    *(Case(f"nccl {name}", 40, mixed(prefix), "logs") for name, prefix in PREFIXES.items()),
)  # fmt: skip


def cpu_of(command: list[str], cwd: Path) -> float:
    """CPU seconds of a command and its children. Modules are compiled once for all runs, as an installation has them,
    whatever the environment says."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = {**os.environ, "PYTHONPATH": f"{cwd}:{cwd / 'probes'}", "PYTHONPYCACHEPREFIX": COMPILED}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    subprocess.run(command, cwd=cwd, env=environment, capture_output=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def seconds_of(command: list[str], cwd: Path) -> float:
    """Seconds by the clock, which two workers share."""
    begun = time.perf_counter()
    cpu_of(command, cwd)
    return time.perf_counter() - begun


def write(case: Case, path: Path, scale: float) -> float:
    """Writes the text; its size in MB."""
    dice, left = random.Random(7), int(case.size_mb * scale * 1e6)
    with path.open("w", encoding="utf-8") as stream:
        lines = case.lines(dice)
        while left > 0:
            text = "\n".join(islice(lines, 1000)) + "\n"
            left -= stream.write(text)
    return path.stat().st_size / 1e6


def small_files(folder: Path, number: int) -> None:
    dice = random.Random(7)
    folder.mkdir()
    for at in range(number):
        lines = islice(unknown(dice), 8)
        (folder / f"note-{at:05d}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--checkout", type=Path, default=ROOT)
    options.add_argument("--scale", type=float, default=1.0)
    options.add_argument("--only", default="")
    options.add_argument("--repeat", type=int, default=1)
    given = options.parse_args()
    wanted = tuple(filter(None, given.only.split(",")))
    program = [sys.executable, "-m", "topodiag"]

    def least(command: list[str], measure: Callable[[list[str], Path], float] = cpu_of) -> float:
        return min(measure(command, given.checkout) for _ in range(given.repeat))

    with tempfile.TemporaryDirectory() as folder:
        at = Path(folder)
        line, path, first = at / "line.log", at / "text.log", at / "first.log"
        line.write_text("[rank3]: torch.OutOfMemoryError: CUDA out of memory.\n", encoding="utf-8")

        def over_start(*command: str, measure: Callable[[list[str], Path], float] = cpu_of) -> float:
            measure([*command, str(first)], given.checkout)  # compiles modules
            return least([*command, str(path)], measure) - least([*command, str(first)], measure)

        for arguments in (("diagnose", str(line)), ("scan", "fixture:dgx-h100-healthy")):
            cpu_of([*program, *arguments], given.checkout)
        python = min(cpu_of([sys.executable, "-c", ""], given.checkout) for _ in range(3))
        start = least([*program, "diagnose", str(line)])
        bundle = least([*program, "scan", "fixture:dgx-h100-healthy"]) - python
        print(f"start of one line over bare Python {start - python:6.2f} s (aim {STARTS['one line']})")
        print(f"scan of a bundle over bare Python {bundle:6.2f} s (aim {STARTS['bundle']})")
        print(f"{'text':16} {'MB':>6} {'CPU s':>8} {'aim':>6} {'MB/s':>7} {'loop s':>7} {'ratio':>6} {'grep s':>7}")
        for case in CASES:
            if wanted and not case.name.startswith(wanted):
                continue
            size = write(case, path, given.scale)
            write(case, first, FIRST)
            took = over_start(*program, case.command, *(ONE_WORKER if case.command == "logs" else ()))
            loop = over_start(sys.executable, "-c", LOOP)
            grep = least(["grep", "-c", "rror", str(path)])
            aim = f"{ENOUGH[case.name] * given.scale:6.2f}" if case.name in ENOUGH else "     -"
            print(f"{case.name:16} {size:6.1f} {took:8.2f} {aim} {size / took:7.1f} {loop:7.2f} {took / loop:6.1f} "
                  f"{grep:7.3f}", flush=True)  # fmt: skip
        if not wanted or "workers".startswith(wanted):
            text = Case("", 160, mixed(""))
            write(text, path, 1.0)
            write(text, first, FIRST)
            one, two = (over_start(*program, "logs", "--workers", n, measure=seconds_of) for n in "12")
            print(f"2 workers read {one / two:.2f} times as fast as one (aim 1.8)", flush=True)
        for number in (5000, 20000):
            name = f"small {number:,}"
            if not wanted or name.startswith(wanted):
                small_files(at / name, int(number * given.scale))
                took = least([*program, "diagnose", str(at / name)]) - start
                print(f"{name:16} {'':6} {took:8.2f} {ENOUGH[name] * given.scale:6.2f}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
