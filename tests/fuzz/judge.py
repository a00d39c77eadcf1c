"""One case after another: what a reader may raise, how long it may take and how much memory, against its seed.

The processor's time counts, not the clock's, so that a busy machine slows nobody. A case above its bound is measured
again before it counts: a collection of garbage or a first import is nobody's fault.
"""

import gc
import random
import resource
import signal
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.fuzz.mutate import mutated
from tests.fuzz.readers import Reader, seeds_of
from topodiag.model.errors import TopodiagError

TIMES = 10
"""A byte of a case may cost so many times as much as a byte of the dearest seed, and may take so much more memory."""
FREE_S = 0.1
"""What any case may take besides: errors that are told, tables of readers that grow once, and what a few bytes may
count up to: the 4 million ranks of a hostfile take half of it where other programs share the processor's caches."""
FREE_BYTES = 96 << 20
"""The same of memory: buffers of numpy and pyarrow, and what a few bytes may count up to: the 4 million ranks of a
hostfile are 64 MiB of numbers."""
LEAST_BYTES = 256
"""A seed of few bytes counts as so many."""
LEAST_SECONDS = 2e-8
"""A byte of a seed counts as so much at least: no clock measures less."""
HANG_S = 20.0
_CLOCK_S, _MOST_TIMES = 0.02, 60
"""A seed is read so often that its time is more than a tick of the clock (4 ms where the machine is a guest)."""
_GROWN = 48 << 20
"""Growth of the process in one case above which the memory of the case is measured."""


@dataclass(frozen=True, slots=True)
class Bad:
    """A case that broke something: `kind` is `error`, `slow`, `memory` or `hang`."""

    kind: str
    why: str
    data: bytes


class HangError(BaseException):
    """The time of a case is over. No Exception: readers guard against those."""


def cases(reader: Reader, number: int, seed: str = "", first: int = 0) -> Iterator[bytes]:
    """`number` mutated seeds, the same for the same `seed`: case 7 is case 7 however many there are."""
    texts = seeds_of(reader.name)
    for at in range(first, first + number):
        yield mutated(random.Random(f"{reader.name}/{seed}/{at}"), texts)


def judged(reader: Reader, data: bytes) -> Bad | None:
    """What is wrong with this case, None where nothing is."""
    size = max(len(data), LEAST_BYTES)
    grown = _peak()
    began = time.process_time()
    bad = _tried(reader, data)
    took = time.process_time() - began
    if bad is not None:
        return bad
    if took > FREE_S:  # only then is the seed's own time worth its measuring
        worth = seconds_of(reader) * size
        most = FREE_S + TIMES * worth
        if took > most:
            took = _seconds(reader, data)
        if took > most:
            took = min(took, _seconds(reader, data))
        if took > most:
            return Bad("slow", f"{took:.3f} s of the processor, a byte {took / worth:.0f} times the seed's", data)
    if _peak() - grown > _GROWN:
        forget_peak()
        peak = _memory(reader, data)
        if peak > FREE_BYTES + TIMES * memory_of(reader) * size:
            return Bad("memory", f"{peak >> 20} MiB for {len(data)} bytes", data)
    return None


def _tried(reader: Reader, data: bytes) -> Bad | None:
    try:
        with _ends_after(HANG_S):
            reader.read(data)
    except TopodiagError as error:
        if "\n" in str(error) or len(str(error)) > 2000:
            return Bad("error", f"not one line: {str(error)[:200]!r}", data)
    except HangError:
        return Bad("hang", f"more than {HANG_S:.0f} s", data)
    except Exception as error:  # noqa: BLE001 - that is what is looked for
        return Bad("error", f"{type(error).__name__}: {str(error)[:200]}", data)
    return None


def seconds_of(reader: Reader) -> float:
    """What a byte of the dearest seed costs: seconds of the processor, on the machine at hand."""
    return _seconds_of(reader.name, reader.read)


def memory_of(reader: Reader) -> float:
    """The most bytes of memory for a byte of a seed."""
    return _memory_of(reader.name, reader.read)


@cache
def _seconds_of(name: str, read: Callable[[bytes], object]) -> float:
    reader, most = Reader(name, read, ()), LEAST_SECONDS
    for data in seeds_of(name):
        _seconds(reader, data)  # loads what is loaded once
        took, times = 0.0, 0
        while took < _CLOCK_S and times < _MOST_TIMES:
            took += _seconds(reader, data)
            times += 1
        most = max(most, took / times / max(len(data), LEAST_BYTES))
    return most


@cache
def _memory_of(name: str, read: Callable[[bytes], object]) -> float:
    reader = Reader(name, read, ())
    return max((_memory(reader, data) / max(len(data), LEAST_BYTES) for data in seeds_of(name)), default=0.0)


def _seconds(reader: Reader, data: bytes) -> float:
    began = time.process_time()
    with suppress(TopodiagError), _ends_after(HANG_S):
        reader.read(data)
    return time.process_time() - began


def _memory(reader: Reader, data: bytes) -> int:
    """The most that Python and numpy held at once."""
    gc.collect()
    tracemalloc.start()
    try:
        with suppress(TopodiagError), _ends_after(HANG_S * 5):
            reader.read(data)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


def forget_peak() -> None:
    """Linux starts to count the most again, so that a later case is seen too."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


@contextmanager
def _ends_after(seconds: float) -> Iterator[None]:
    """Raises HangError in the main thread after so many seconds of the processor; elsewhere nothing can."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def ended(*_: object) -> None:
        raise HangError

    before = signal.signal(signal.SIGPROF, ended)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def shrunk(reader: Reader, bad: Bad, seconds: float = 20.0) -> Bad:
    """The same fault in fewer bytes, where leaving out parts keeps it: what is kept as a fixture is read by people.
    Tries for so many seconds of the processor."""
    data, step = bad.data, max(len(bad.data) // 2, 1)
    ends = time.process_time() + seconds
    while step >= 1:
        at = 0
        while at < len(data):
            if time.process_time() > ends:
                return bad
            less = data[:at] + data[at + step :]
            verdict = judged(reader, less)
            if verdict is not None and _same_fault(verdict, bad):
                data, bad = less, verdict
            else:
                at += step
        step //= 2
    return bad


def _same_fault(one: Bad, other: Bad) -> bool:
    return one.kind == other.kind and one.why.split(":")[0] == other.why.split(":")[0]


def run_cases(reader: Reader, texts: Iterator[bytes] | Sequence[bytes]) -> tuple[int, list[Bad]]:
    """The number of cases, and the bad ones."""
    number, bad = 0, []
    for data in texts:
        number += 1
        verdict = judged(reader, data)
        if verdict is not None:
            bad.append(verdict)
    return number, bad
