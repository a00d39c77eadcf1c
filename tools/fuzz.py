"""Gives mutated inputs to the readers of topodiag, for minutes or for a number of cases.

    python tools/fuzz.py --list
    python tools/fuzz.py --reader "kind nccl-log" --minutes 60
    python tools/fuzz.py --cases 30000                    all readers, so many cases each

The same --seed gives the same cases. What breaks is shrunk and kept in tests/fuzz/crashes/, where the suite replays it:
mend it, then commit the file. With atheris installed, --guided lets coverage choose the mutations of one reader.
"""

from __future__ import annotations

import argparse
import hashlib
import resource
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "probes")]
MEMORY = 12 << 30
"""Bytes of address space: a case that wants more fails here, and not the machine."""
TURN_S = 4.0
"""Seconds of one reader before the next one: those whose cases are dear get no more of the time."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reader", action="append", default=[], help="one reader by name; repeat it (default: all)")
    parser.add_argument("--minutes", type=float, default=0.0, help="how long, all readers together")
    parser.add_argument("--cases", type=int, default=0, help="how many cases of each reader")
    parser.add_argument("--seed", default="", help="other cases than those of the suite")
    parser.add_argument("--guided", action="store_true", help="let atheris choose by coverage; one reader")
    parser.add_argument("--list", action="store_true", help="name the readers")
    args = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # whoever ends it sees the figures so far
    if args.guided:
        return guided(args.reader, args.minutes)
    from tests.fuzz.readers import readers

    known = readers()
    if args.list:
        print("\n".join(known))
        return 0
    unknown = [name for name in args.reader if name not in known]
    if unknown or not (args.minutes or args.cases):
        print(f"no such reader: {unknown[0]}" if unknown else "give --minutes or --cases", file=sys.stderr)
        return 2
    return blind(args.reader or list(known), args.cases, args.minutes * 60, args.seed)


@dataclass(slots=True)
class Score:
    """What a reader has been through: cases, those that broke something, seconds of the processor."""

    cases: int = 0
    errors: int = 0
    slow: int = 0
    seconds: float = 0.0


def blind(names: list[str], most: int, seconds: float, seed: str) -> int:
    """Rounds over the readers, each with a turn of TURN_S, until cases or time are over; the exit code."""
    scores = {name: Score() for name in names}
    seen: set[tuple[str, str, str]] = set()
    ends = time.monotonic() + seconds if seconds else float("inf")
    try:
        while time.monotonic() < ends and (left := [name for name in names if not most or scores[name].cases < most]):
            for name in left:
                turn(name, scores[name], most, min(ends, time.monotonic() + TURN_S), seed, seen)
    except KeyboardInterrupt:
        print("interrupted")
    scores["all"] = Score(*(sum(getattr(each, name) for each in scores.values()) for name in Score.__slots__))
    print(f"{'reader':32}{'cases':>10}{'errors':>8}{'slow':>6}{'CPU s':>9}")
    for name, score in scores.items():
        print(f"{name:32}{score.cases:10}{score.errors:8}{score.slow:6}{score.seconds:9.1f}")
    return 1 if seen else 0


def turn(  # noqa: PLR0917 - one reader, and what holds for all of them
    name: str, score: Score, most: int, ends: float, seed: str, seen: set[tuple[str, str, str]]
) -> None:
    """The next cases of one reader. A fault of a kind that was `seen` is counted and not kept again."""
    from tests.fuzz.judge import cases, judged, shrunk
    from tests.fuzz.readers import readers

    reader = readers()[name]
    began = time.process_time()
    for data in cases(reader, most - score.cases if most else sys.maxsize, seed, score.cases):
        bad = judged(reader, data)
        score.cases += 1
        if bad is not None:
            score.errors += bad.kind == "error"
            score.slow += bad.kind != "error"
            mark = (name, bad.kind, bad.why[:60] if bad.kind == "error" else "")
            if mark not in seen:
                seen.add(mark)
                keep(name, shrunk(reader, bad).data, bad.kind, bad.why)
        if time.monotonic() > ends:
            break
    score.seconds += time.process_time() - began


def keep(reader: str, data: bytes, kind: str, why: str) -> None:
    """The input as a fixture of the suite."""
    folder = ROOT / "tests" / "fuzz" / "crashes" / reader.replace(" ", "+")
    folder.mkdir(parents=True, exist_ok=True)
    place = folder / f"{kind}-{hashlib.sha256(data).hexdigest()[:12]}"
    place.write_bytes(data)
    print(f"{reader}: {kind}: {why}\n    {place.relative_to(ROOT)}", flush=True)


def guided(names: list[str], minutes: float) -> int:
    """One reader under atheris, until the time is over or something breaks."""
    try:
        import atheris
    except ImportError:
        print("atheris is not installed: pip install atheris", file=sys.stderr)
        return 2
    if len(names) != 1:
        print("--guided takes one --reader", file=sys.stderr)
        return 2
    with atheris.instrument_imports(include=["topodiag"]):
        from tests.fuzz.judge import judged
        from tests.fuzz.mutate import mutated
        from tests.fuzz.readers import readers, seeds_of
    import random

    reader = readers()[names[0]]
    texts = seeds_of(reader.name)
    for data in texts:
        judged(reader, data)

    def one(data: bytes) -> None:
        bad = judged(reader, data)
        if bad is not None:
            keep(reader.name, bad.data, bad.kind, bad.why)
            raise RuntimeError(bad.why)

    def mutation(data: bytes, most: int, seed: int) -> bytes:
        chance = random.Random(seed)
        return atheris.Mutate(data, most) if chance.random() < 0.5 else mutated(chance, [data or b"\n", *texts])[:most]

    arguments = [sys.argv[0], "-max_len=65536", *([f"-max_total_time={int(minutes * 60)}"] if minutes else [])]
    atheris.Setup(arguments, one, custom_mutator=mutation)
    atheris.Fuzz()
    return 0


if __name__ == "__main__":
    sys.exit(main())
