"""`topodiag ras` against a server that speaks NCCL's protocol, with its documented traps."""

import json
import socket
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.evidence.live.test_ras import HEAD, WARNINGS, status
from tests.tables import examples
from topodiag.app.case.ras import Asking, with_ras
from topodiag.app.diagnose import diagnose
from topodiag.app.logs import logs, ras
from topodiag.evidence.live.ras_client import ask, place_of, read_ras
from topodiag.model.errors import InputError
from topodiag.model.finding import Severity
from topodiag.model.ras import RasAnswer
from topodiag.model.result import Result

Answer = Callable[[socket.socket, int], None]
"""Answers one connection; the number counts connections from 0."""

OLD = b"SERVER PROTOCOL 2\nERROR: Unknown command SET FORMAT json\n"


@contextmanager
def server(answer: Answer) -> Iterator[str]:
    """HOST:PORT of a RAS that answers so, on loopback."""
    listening = socket.create_server(("127.0.0.1", 0))
    listening.settimeout(10)

    def serve() -> None:
        number = 0
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            with connection:
                try:
                    connection.settimeout(5)
                    heard = b""
                    while not heard.endswith(b"VERBOSE STATUS\n"):
                        heard += connection.recv(4096)
                    answer(connection, number)
                except OSError:
                    pass
            number += 1

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield f"127.0.0.1:{listening.getsockname()[1]}"
    finally:
        listening.shutdown(socket.SHUT_RDWR)
        listening.close()
        thread.join(10)


def as_json(behind: int = 5, stamp: str = "2026-11-22 08:19:50", key: str = "0x3d9f2208e70d8f94") -> bytes:
    document = status(8, behind, stamp=stamp)
    document["communicators"][0]["hash"] = key  # type: ignore[index]
    return b"SERVER PROTOCOL 2\nOK\n" + json.dumps(document, indent=2).encode() + b"\n"


def stamped(number: int) -> str:
    return f"2026-11-22 08:19:{10 + number * 10}"


def asked(answer: Answer, *, times: int = 2, save: str | None = None) -> Result:
    with server(answer) as place:
        return ras([place], asking=Asking(times, 0.0, save))


def test_a_rank_that_stays_behind_in_two_answers_is_named(tmp_path: Path) -> None:
    result = asked(lambda to, n: to.sendall(as_json(stamp=stamped(n))), save=str(tmp_path / "answers"))
    (finding,) = result.findings
    assert (finding.id, finding.severity, finding.where.ranks) == ("JOB006", Severity.ERROR, (5,))
    kept = sorted((tmp_path / "answers").iterdir())
    assert len(kept) == 2
    assert [finding.id for finding in logs([str(tmp_path / "answers")]).findings] == ["JOB006"]


def test_what_ras_cannot_see_is_said_and_never_taken_for_health() -> None:
    result = asked(lambda to, n: to.sendall(as_json(-1, stamped(n))))
    assert result.findings == ()
    assert "ncclCommSplit" in " ".join(gap.why for gap in result.not_observed)
    assert {outcome.status.value for outcome in result.outcomes if outcome.check == "JOB006"} == {"unknown"}


def test_an_old_server_that_knows_no_json_is_understood() -> None:
    text = HEAD + WARNINGS + (
        "#0-0 (1f) MISMATCH\n  Communicator ranks have different collective operation counts\n"
        "  31 ranks have launched up to operation 384\n"
        "  Rank 9 has launched up to operation 383 -- GPU 1 managed by process 12 on node 10.0.0.2\n\n"
    )  # fmt: skip
    (finding,) = asked(lambda to, _: to.sendall(OLD + text.encode())).findings
    assert finding.where.ranks == (9,)


def test_an_answer_is_judged_though_a_text_without_a_record_lies_beside_it(tmp_path: Path) -> None:
    """A folder of all that was asked holds answers of other commands, and notes."""
    for number in range(2):
        (tmp_path / f"{number}.json").write_bytes(as_json(stamp=stamped(number)))
    (tmp_path / "timeout.txt").write_text("OK\n")
    result = logs([str(tmp_path)])
    assert [(finding.id, finding.where.ranks) for finding in result.findings] == [("JOB006", (5,))]
    assert "timeout.txt: holds no NCCL record" in " ".join(gap.why for gap in result.not_observed)


BUSY = b"SERVER PROTOCOL 2\nOK\nBUSY: diagnostics already in progress\n"
"""What 2.31 answers while it runs its diagnostics for somebody else."""


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (BUSY, "BUSY: diagnostics already in progress"),
        (b"ERROR: Invalid format json\n", "says nothing of a communicator"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "says nothing of a communicator"),
        (b"\x16\x03\x01\x00\xff" * 40, "says nothing of a communicator"),
        (b'{"status": 1}\n', "says nothing of a communicator"),
        (as_json()[: len(as_json()) // 2], "says nothing of a communicator"),
        (b"", "nothing of a communicator"),
    ],
    ids=["stays busy", "refused format", "a web server", "no text", "another JSON", "cut in a line", "closes at once"],
)
def test_an_answer_that_says_nothing_is_no_healthy_job_and_no_young_one(words: bytes, why: str) -> None:
    with pytest.raises(InputError, match=why):
        asked(lambda to, _: to.sendall(words))


@pytest.mark.parametrize(
    ("before", "parts", "pause_s"),
    [([], 6, 0.001), ([], 3, 0.1), ([b""], 1, 0.0), ([BUSY, BUSY], 1, 0.0)],
    ids=["torn lines", "slower than a line a tenth of a second", "empty at first", "busy at first"],
)
def test_an_answer_that_comes_late_or_in_pieces_is_waited_for(before: list[bytes], parts: int, pause_s: float) -> None:
    def answer(to: socket.socket, number: int) -> None:
        data = as_json(stamp=stamped(number)) if number >= len(before) else before[number]
        size = len(data) // parts + 1
        for at in range(0, len(data), size):
            to.sendall(data[at : at + size])
            time.sleep(pause_s)

    result = asked(answer)
    assert [(each.id, each.severity, each.where.ranks) for each in result.findings] == [
        ("JOB006", Severity.ERROR, (5,))
    ]
    assert (BUSY in before) is (
        "BUSY: diagnostics already in progress" in " ".join(gap.why for gap in result.not_observed)
    )


def test_a_server_that_stays_busy_leaves_the_logs_beside_it(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("n0:1:1 [0] NCCL INFO NCCL version 2.31.2+cuda13.0\n")
    with server(lambda to, _: to.sendall(BUSY)) as place:
        result = ras([place], [str(tmp_path)], asking=Asking(1, 0.0))
    assert not result.findings
    assert "ask again once that is done" in " ".join(gap.why for gap in result.not_observed)


def test_an_error_that_a_rank_reports_is_the_first_error_of_the_job() -> None:
    def failing(to: socket.socket, number: int) -> None:
        document = status(4, stamp=stamped(number))
        document["communicators"][0]["ranks"][2]["status"]["async_error"] = 2  # type: ignore[index]
        to.sendall(json.dumps(document, indent=2).encode())

    findings = [finding for finding in asked(failing).findings if finding.id == "JOB005"]
    assert [finding.where.nodes for finding in findings] == [("10.0.0.1",)]
    assert "unhandled system error" in findings[0].message


def test_two_jobs_on_one_port_are_judged_apart() -> None:
    def in_turn(to: socket.socket, number: int) -> None:
        to.sendall(as_json(5 if number % 2 else -1, stamped(number % 5), "0xaa" if number % 2 else "0xbb"))

    findings = asked(in_turn).findings
    assert [finding.where.ranks for finding in findings] == [(5,)]


def test_a_diagnosis_asks_a_running_job_as_well() -> None:
    with server(lambda to, n: to.sendall(as_json(stamp=stamped(n)))) as place:
        result = diagnose([], places=[place], asking=Asking(2, 0.0))
    assert [(finding.id, finding.where.ranks) for finding in result.findings] == [("JOB006", (5,))]
    assert result.verdict.state.value == "hung"
    assert any("cannot see" in gap.what for gap in result.not_observed)


def test_a_server_that_says_nothing_is_given_up() -> None:
    with server(lambda *_: time.sleep(0.6)) as place:
        host, port = place_of(place)
        with pytest.raises(InputError, match="says nothing for"):
            ask(host, port, answer_s=0.2)


def test_where_nothing_listens_the_remedy_is_named() -> None:
    free = socket.create_server(("127.0.0.1", 0))
    port = free.getsockname()[1]
    free.close()
    with pytest.raises(InputError, match="NCCL_RAS_ADDR"):
        ras([f"127.0.0.1:{port}"], asking=Asking(1, 0.0))


@examples("given", "place")
def test_a_place_is_a_host_with_or_without_its_port(given: str, place: tuple[str, int]) -> None:
    assert place_of(given) == place


@pytest.mark.parametrize("given", [":28028", "gpu07:x", "gpu07:99999", ""])
def test_what_is_no_place_is_refused(given: str) -> None:
    with pytest.raises(InputError, match="host and port"):
        place_of(given)


def test_a_job_of_answers_alone_has_the_version_that_they_name() -> None:
    answer = RasAnswer("ras.txt", version="2.26.2", processes=256)
    assert with_ras((), (answer,))[0].nccl_versions == ("2.26.2",)


def test_all_answers_together_have_one_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    def drips(to: socket.socket, number: int) -> None:
        while True:
            to.sendall(b"x")
            time.sleep(0.05)

    monkeypatch.setattr("topodiag.app.case.ras.TALK_S", 1.2)
    began = time.monotonic()
    with server(drips) as place, pytest.raises(InputError):
        ras([place], asking=Asking(times=5, pause_s=0.0))
    assert time.monotonic() - began < 5


def test_small_lines_without_an_answer_cost_no_object_each(monkeypatch: pytest.MonkeyPatch) -> None:
    tracemalloc.start()
    text = '{"a":1}\nx\n' * 200_000
    assert read_ras(text, "answer") == ()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3 * len(text)


def test_a_file_that_is_no_answer_is_not_written_over_by_one(tmp_path: Path) -> None:
    with server(lambda to, number: to.sendall(as_json())) as place:
        name = f"{place.replace(':', '_')}-1.txt"
        (tmp_path / name).write_text("notes of mine")
        with pytest.raises(InputError, match="would be written over"):
            ras([place], asking=Asking(times=1, pause_s=0.0, save=str(tmp_path)))
    assert (tmp_path / name).read_text() == "notes of mine"
