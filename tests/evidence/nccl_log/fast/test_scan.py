"""The fast extractor gives what the plain one gives."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.evidence.nccl_log.line_by_line import extract_plain
from tests.evidence.nccl_log.scan_compare import plain_rows
from tests.tables import examples, texts
from topodiag.evidence.nccl_log.fast import scan
from topodiag.evidence.nccl_log.tables.facts import SCHEMAS
from topodiag.evidence.nccl_log.tables.resolve import resolve

_TEXTS = texts(__file__)
_MESSAGES, _HEADS = _TEXTS["messages"], _TEXTS["heads"]
_LABELS, _APPLICATION = _TEXTS["labels"], _TEXTS["application"]

_records = st.builds("".join, st.tuples(*(st.sampled_from(x) for x in (_LABELS, _HEADS, _MESSAGES))))
_torn = st.builds(lambda line, cut: line[cut:], _records, st.integers(0, 60))
_line = st.one_of(
    _records, _records, _records, st.sampled_from(_APPLICATION), _torn,
    st.builds("".join, st.tuples(_records, _records)), st.builds("".join, st.tuples(_torn, st.just("\r"))),
    st.text(alphabet="Nn[]: 0aÿ\tL", max_size=12),
)  # fmt: skip


def _same(data: bytes) -> None:
    assert plain_rows(scan.extract(data, 3, 4096)) == plain_rows(extract_plain(data, 3, 4096))


def _same_apart(texts: list[str]) -> None:
    """Each text is a file of its own; they are read together."""
    given = [(text.encode(), 7 - number, 100 * number) for number, text in enumerate(texts)]
    records = [plain_rows(extract_plain(*row)) for row in given]
    assert plain_rows(resolve(scan.extract_several(given))) == {
        name: sorted((row for rows in records for row in rows[name]), key=repr) for name in SCHEMAS
    }


@given(st.lists(_line, max_size=40), st.sampled_from(["", "\n"]))
def test_any_mixture_of_lines_gives_the_plain_result(lines: list[str], end: str) -> None:
    _same(("\n".join(lines) + end).encode())


@pytest.mark.parametrize("second", ["h:1:2 [0] INFO ", "h:1:2 [0] INFO Using network IB", "h:1:2 [0] x.cc:7 WARN "])
@examples("first")
def test_a_second_record_on_a_line_may_be_of_a_new_thread_and_empty(first: str, second: str) -> None:
    _same(f"node01:311:352 [0] NCCL INFO {first}{second}\nh:1:2 [0] NCCL INFO Using network IB\n".encode())


@given(st.lists(st.lists(_line, max_size=15), max_size=5), st.sampled_from(["", "\n"]))
def test_files_that_are_read_together_give_what_each_gives_alone(files: list[list[str]], end: str) -> None:
    _same_apart(["\n".join(lines) + end for lines in files])


@pytest.mark.parametrize("text", ["", "epoch 1\n", "epoch 1\nepoch 2", "\n\n", "NCCL\n", "epoch 1\rfailed"])
def test_files_of_another_kind_give_the_plain_result(text: str) -> None:
    _same(text.encode())


@pytest.mark.parametrize("head", _HEADS)
@pytest.mark.parametrize("label", _LABELS)
def test_every_message_behind_every_head_gives_the_plain_result(label: str, head: str) -> None:
    _same("\n".join(label + head + message for message in _MESSAGES * 2).encode())


def test_the_size_of_blocks_does_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    data = "\n".join(_HEADS[n % 2] + _MESSAGES[(7 * n) % len(_MESSAGES)] for n in range(300)).encode()
    whole = plain_rows(scan.extract(data, 0, 0))
    monkeypatch.setattr(scan, "BLOCK", 700)
    assert plain_rows(scan.extract(data, 0, 0)) == whole == plain_rows(extract_plain(data, 0, 0))


_NUMBERS = st.sampled_from(["0", "7", "-1", "00000012", "123456789", "99999999999999999999", "1f", "(nil)", "", "a b"])
_DIGITS = st.integers(0, 1 << 66).map(str) | _NUMBERS
_HEX = st.integers(0, 1 << 66).map(lambda value: f"0x{value:x}") | _NUMBERS


@given(
    st.sampled_from(["AllReduce", "Send", "a_b", "NCCL", "AllGatherOfMoreLettersThanAWordCanHold", "4"]),
    st.tuples(*[_DIGITS] * 6, *[_HEX] * 3),
)
def test_operations_of_any_numbers_give_the_plain_result(func: str, said: tuple[str, ...]) -> None:
    count, elements, dtype, redop, root, nranks, send, receive, comm = said
    _same(
        f"n:1:1 [0] NCCL INFO {func}: opCount {count} sendbuff {send} recvbuff {receive} count {elements} "
        f"datatype {dtype} op {redop} root {root} comm {comm} [nranks={nranks}] stream 0x1".encode()
    )


@given(st.sampled_from(["START", "COMPLETE"]), st.booleans(), st.tuples(*[_DIGITS] * 6, *[_HEX] * 2))
def test_inits_of_any_numbers_give_the_plain_result(end: str, member: bool, said: tuple[str, ...]) -> None:
    rank, nranks, cuda, nvml, bus, more, comm, job = said
    start = (
        f"comm {comm} rank {rank} nRanks {nranks} nNodes {cuda} localRanks {nvml} localRank {bus} MNNVL {more}"
        if member
        else f"ncclCommInitRank comm {comm} rank {rank} nranks {nranks} cudaDev {cuda} nvmlDev {nvml} busId {bus} "
        f"commId {job} - Init {end}"
    )
    _same(f"2025-08-14 09:31:07 n:1:1 [0] NCCL INFO {start}\nn:1:1 [0] NCCL INFO cudaDriverVersion 13000".encode())


@given(st.lists(st.tuples(*[_DIGITS] * 4, st.sampled_from(["/", "/1", "/IB/", "/3(", ")", "[send] via NET/IB/"]))))
@example([("0", "0", "0", "0", "/")] * 5 + [("10", "0", "0", "(nil)", "/1")])
def test_channels_of_any_numbers_give_the_plain_result(said: list[tuple[str, ...]]) -> None:
    forms = (
        "Channel {0}/{1} : {2}[{3}] -> {1}[{0}] [send] via NET/IB/{2}({3})/GDRDMA{4}",
        "Channel 01/1 : 2[3] -> 1[7] [receive] via NET/IB/{0}/GDRDMA(PCI)/Shared{4}",
        "Channel 01/1 : {2}[3] -> {1}[7] via P2P/{4}",
        "Ring {0} : {1} -> {2} -> {3}",
        "Ring 01 : {1} -> {2} -> {3}{4}",
    )
    lines = [f"n:1:1 [0] NCCL INFO {form.format(*texts)}" for texts in said for form in forms]
    _same("\n".join(lines).encode())


@pytest.mark.parametrize("label", ["", "{rank}: ", "2025-08-14 09:{minute:02d}:{second:02d}.{line:06d} "])
def test_lines_of_many_threads_give_the_plain_result(label: str) -> None:
    lines = []
    for line in range(6000):
        rank = (line // 3 * 7919) % 700
        front = label.format(rank=rank, minute=line // 60 % 60, second=line % 60, line=line)
        message = _MESSAGES[line % 5]
        lines.append(f"{front}node{rank // 8}:{1000 + rank}:{2000 + rank} [{rank % 8}] NCCL INFO {message}")
    _same("\n".join(lines).encode())


@pytest.mark.parametrize("odd", ["\r", "\0", "\t", "\x1b[0m", "\x0b"])
@pytest.mark.parametrize("end", ["", "\n"])
def test_a_control_character_in_a_line_gives_the_plain_result(odd: str, end: str) -> None:
    for at in (lambda _: 0, lambda _: 3, lambda message: len(message) // 2, len):
        _same_apart([_HEADS[0] + text[: at(text)] + odd + text[at(text) :] + end for text in _MESSAGES])


def test_many_different_operations_are_rounded_as_the_plain_result() -> None:
    lines = (
        f"n:1:1 [0] NCCL INFO AllReduce: opCount {n:x} sendbuff 0x1 recvbuff 0x1 count {n * 37} datatype 7 op 0 root 0 "
        "comm 0x55 [nranks=4] stream 0x1"
        for n in range(200)
    )
    _same("\n".join(lines).encode())


def test_a_view_of_bytes_is_read_as_bytes() -> None:
    data = (_HEADS[0] + _MESSAGES[4] + "\n").encode()
    assert plain_rows(scan.extract(memoryview(data), 0, 0)) == plain_rows(scan.extract(data, 0, 0))
    assert len(scan.extract(b"", 0, 0)["conn"]) == 0
