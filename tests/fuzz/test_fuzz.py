"""Readers and mutated inputs: no error but one clear line, no time and no memory beyond what the input is worth."""

import pytest

from tests.depth import DEEP
from tests.fuzz import judge
from tests.fuzz.judge import cases, judged, run_cases, seconds_of
from tests.fuzz.mutate import MOST_BYTES
from tests.fuzz.readers import OF_KINDS, ONLY_RECOGNISED, GuardedError, Reader, crashes, readers, seeds_of
from tests.fuzz.seeds import SEEDS
from topodiag.checks.registry import Subject, check_of
from topodiag.evidence.kinds import Kind
from topodiag.model.errors import InputError

NAMES = tuple(readers())
CASES = 150 if DEEP else 40
DEAR = {
    **dict.fromkeys(("file any", "kind archive", "kind bundle", "kind hwloc-xml", "kind nccl-topology", "kind parquet",
                     "kind node-text", "source hwloc-xml", "source ibv-devinfo", "source nvidia-smi-nvlink",
                     "source nvidia-smi-topo", "source settings", "source sys-pci", "kind step-times",
                     "kind nccl-inspector"), 25),
    **dict.fromkeys(("file diagnosed", "kind job-output", "kind json", "kind manifest", "kind nccl-log",
                     "kind nccl-ras", "kind stack-dump", "source nccl-xml"), 10),
    "file joined": 4,
}  # fmt: skip
"""Cases of each reader in the suite, fewer where one takes longer: together they take some 7 seconds of a processor.
tools/fuzz.py takes minutes and hours."""
KEPT = tuple(crashes())


@pytest.mark.parametrize("name", NAMES)
def test_mutated_inputs_are_read_or_refused_in_one_line_and_in_bounds(name: str) -> None:
    wanted = DEAR.get(name, CASES)
    number, bad = run_cases(readers()[name], cases(readers()[name], wanted))
    assert number == wanted
    assert not [(each.kind, each.why, each.data[:300]) for each in bad]


@pytest.mark.parametrize(
    ("name", "data"), [row[::2] for row in KEPT], ids=[f"{name}: {file}" for name, file, _ in KEPT]
)
def test_what_once_broke_a_reader_breaks_it_no_more(name: str, data: bytes) -> None:
    assert judged(readers()[name], data) is None


@pytest.mark.parametrize("name", NAMES)
def test_every_reader_has_a_seed_that_it_reads(name: str) -> None:
    assert seeds_of(name), f"name a text for {name!r} in tests/fuzz/seeds.py"
    for data in seeds_of(name):
        readers()[name].read(data)


def test_every_kind_of_evidence_is_fuzzed_or_only_recognised() -> None:
    assert set(OF_KINDS) | ONLY_RECOGNISED == set(Kind), "a new kind: name its reader in tests/fuzz/readers.py"
    assert not set(OF_KINDS) & ONLY_RECOGNISED


def test_every_seed_is_of_a_reader() -> None:
    assert set(SEEDS) < set(NAMES)
    assert set(DEAR) < set(NAMES)


def test_cases_are_the_same_for_the_same_seed() -> None:
    reader = readers()["cluster CSV"]
    first = list(cases(reader, 30, "a"))
    assert first == list(cases(reader, 30, "a"))
    assert first[10:] == list(cases(reader, 20, "a", first=10))
    assert first != list(cases(reader, 30, "b"))
    assert max(map(len, first)) <= MOST_BYTES


def test_an_error_of_a_check_is_no_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    def breaks(*_: object) -> None:
        raise StopIteration

    monkeypatch.setattr(check_of(Subject.NODE, "GPU001"), "judge", breaks)
    with pytest.raises(GuardedError, match="GPU001: StopIteration"):
        readers()["kind node-text"].read(seeds_of("kind node-text")[0])


# --- the judge itself: a fault of each kind is found --------------------------------------------------------------


def fuzzed(read: object) -> Reader:
    return Reader("cluster CSV", read, ())  # type: ignore[arg-type]


def test_an_error_that_is_no_refusal_is_found() -> None:
    def breaks(data: bytes) -> None:
        if b"x" in data:
            raise KeyError("x")

    verdict = judged(fuzzed(breaks), b"x")
    assert (verdict.kind, verdict.why) == ("error", "KeyError: 'x'")
    assert judged(fuzzed(breaks), b"y") is None


def test_a_refusal_in_one_line_is_no_fault_and_one_of_two_lines_is() -> None:
    def refuses(data: bytes) -> None:
        raise InputError("file", data.decode())

    assert judged(fuzzed(refuses), b"is no table") is None
    verdict = judged(fuzzed(refuses), b"is no\ntable")
    assert "not one line" in verdict.why


def test_time_beyond_ten_times_the_seeds_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judge, "FREE_S", 0.01)

    def squares(data: bytes) -> None:
        sum(1 for _ in range(len(data) ** 2 // 20))

    verdict = judged(fuzzed(squares), b"x" * 6000)
    assert verdict.kind == "slow"
    assert seconds_of(fuzzed(squares)) < 1e-3


def test_memory_beyond_ten_times_the_seeds_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judge, "FREE_S", 5.0)

    def grows(data: bytes) -> None:
        if len(data) > 1000:
            b"x" * (160 << 20)

    judge.forget_peak()  # of the tests before: a process that was larger once does not grow
    verdict = judged(fuzzed(grows), b"x" * 2000)
    assert verdict.kind == "memory"
