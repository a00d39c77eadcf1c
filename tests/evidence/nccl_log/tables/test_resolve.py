"""Facts of shards come to one normal form, whatever the cut and the grouping."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from tests.evidence.nccl_log.line_by_line import concat, extract_plain
from topodiag.evidence.nccl_log.tables.facts import SCHEMAS, Facts
from topodiag.evidence.nccl_log.tables.resolve import resolve

HEAD = "n0:{pid}:{tid} [{dev}] NCCL INFO "


def log() -> bytes:
    """Two processes in one file, with an address used twice and lines that only context places."""
    lines = []
    for turn in range(2):
        for pid in (10, 11):
            head = HEAD.format(pid=pid, tid=pid, dev=pid - 10)
            rank = pid - 10
            init = f"ncclCommInitRank comm 0x7f0000000010 rank {rank} nranks 2 cudaDev {rank} nvmlDev {rank} busId "
            init += f"{rank + 1}000 commId 0xab{turn} - Init "
            lines += [
                head + "Using network IB",
                head + init + "START",
                head + "=== System : maxBw 48.0 totalBw 48.0 ===",
                head + "CPU/0-0 (1/1/2)",
                head + "==========================================",
                *(head + f"Ring {c:02d} : {1 - rank} -> {rank} -> {1 - rank}" for c in range(3)),
                *(
                    head + f"Channel {c:02d}/0 : {rank}[{rank}] -> {1 - rank}[{1 - rank}] via P2P/CUMEM"
                    for c in range(3)
                ),
                head + init + "COMPLETE",
                "",
                head.replace("NCCL INFO ", "transport/net.cc:1 NCCL WARN ") + "something odd",
            ]
            lines += [
                head + f"AllReduce: opCount {n:x} sendbuff 0x1 recvbuff 0x2 count {1000 + n} datatype 7 op 0 root 0 "
                f"comm 0x7f0000000010 [nranks=2] stream 0x3"
                for n in range(40)
            ]
    return ("\n".join(lines) + "\n").encode()


LOG = log()
ENDS = [i + 1 for i, byte in enumerate(LOG) if byte == 10]


def shards(cuts: list[int]) -> list[Facts]:
    edges = sorted({0, len(LOG), *cuts})
    return [extract_plain(LOG[a:b], 0, a) for a, b in pairwise(edges)]


def same(a: Facts, b: Facts) -> None:
    for name in SCHEMAS:
        assert a[name].rows() == b[name].rows() or repr(a[name].rows()) == repr(b[name].rows()), name


@given(st.lists(st.sampled_from(ENDS), max_size=6), st.randoms(use_true_random=False), st.integers(0, 6))
def test_any_cut_and_grouping_gives_the_same_facts(cuts: list[int], random: object, first: int) -> None:
    whole = resolve(extract_plain(LOG, 0, 0))
    parts = shards(cuts)
    random.shuffle(parts)  # type: ignore[attr-defined]
    left, right = parts[:first], parts[first:]
    tree = (
        resolve(concat([resolve(concat(left)), resolve(concat(right))])) if left and right else resolve(concat(parts))
    )
    same(whole, resolve(concat(parts)))
    same(whole, tree)


def test_resolving_twice_changes_nothing() -> None:
    once = resolve(concat(shards(ENDS[::7])))
    same(once, resolve(once))


def test_an_address_used_again_is_another_generation() -> None:
    facts = resolve(concat(shards(ENDS[::5])))
    assert len(set(facts["ring"].values("gen"))) == 4
    assert min(facts["ring"].values("gen")) >= 0


def test_a_part_without_the_beginning_stays_open() -> None:
    middle = ENDS[6]
    part = resolve(extract_plain(LOG[middle:], 0, middle))
    assert min(part["conn"].values("gen")) == -1
    same(resolve(concat([part, extract_plain(LOG[:middle], 0, 0)])), resolve(extract_plain(LOG, 0, 0)))


def test_lines_are_those_of_the_file() -> None:
    facts = resolve(concat(shards(ENDS[::9])))
    lines = LOG.decode().split("\n")
    for row in facts["init"].rows():
        assert "Init" in lines[row["line"] - 1]
