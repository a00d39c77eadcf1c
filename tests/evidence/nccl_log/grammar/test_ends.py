"""Lines of a job's programs: ends of processes, ranks that wait, the store where they meet, lost peers."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.pasted import loud
from tests.tables import examples
from topodiag.checks.shared.phrases import advice_by_words
from topodiag.evidence.nccl_log.grammar import ends
from topodiag.evidence.nccl_log.grammar.job_lines import end_of, peer_of, said_of, task_of, why_unreached
from topodiag.evidence.nccl_log.grammar.prefix import application
from topodiag.evidence.nccl_log.grammar.spoken import SPEAKS, holds_job_lines

STEP = "slurmstepd: error: *** JOB 88 ON n7 CANCELLED AT 2026-07-21T09:14:02"


@examples("text", "how")
def test_a_line_says_how_a_process_ended(text: str, how: str) -> None:
    kind, named = end_of(text) or ("", {})
    assert (kind, named.get("how")) == ("ended", how)


@examples("text")
def test_what_meets_another_failure_is_no_end_of_its_own(text: str) -> None:
    assert end_of(text) is None


def test_the_rank_is_the_one_that_the_line_names() -> None:
    assert task_of("srun: error: n1: task 3: Killed") == "3"
    assert task_of("srun: error: n1: tasks 3-5: Killed") == ""
    assert task_of("ValueError: no") == ""


@examples("text", "kind", "named")
def test_a_line_names_ranks_hosts_and_operations(text: str, kind: str, named: dict[str, str]) -> None:
    assert end_of(text) == (kind, named)


def test_such_a_line_is_a_row_of_events() -> None:
    name, row = application("[rank11]: torch.OutOfMemoryError: CUDA out of memory.") or ("", {})
    assert (name, row["level"], row["label"]) == ("event", "APP", "11")


def test_what_tells_a_text_as_a_jobs_output_is_also_looked_for_by_the_fast_reader() -> None:
    for text in (f"{STEP} DUE TO TIME LIMIT ***", "[rank1]: x.ValueError: no", "srun: error: n1: task 3: Killed"):
        assert holds_job_lines(text.encode())
        assert any(word in text.encode() for word in SPEAKS)


def test_an_exception_counts_below_the_frame_of_a_traceback_that_was_cut() -> None:
    frame = b'  File "train.py", line 9, in step\n'
    assert holds_job_lines(frame + b"RuntimeError: CUDA out of memory. Tried to allocate 4 GiB\n")
    assert not holds_job_lines(b"retry after RuntimeError: CUDA out of memory. Tried to allocate 4 GiB\n")


TRACEBACK = """Traceback (most recent call last):
  File "train.py", line 12, in <module>
    main()
  File "lib/model.py", line 9, in main
    loss.backward()
"""


OF_A_REQUEST = TRACEBACK.replace("<module>", "answer")


def _last(text: str) -> ends.LastTraceback | None:
    lines = text.split("\n")
    return ends.last_traceback(lines, ends.handled_exceptions(lines))


@examples("end", "line", "name")
def test_a_text_ends_with_the_traceback_of_what_nobody_caught(end: str, line: int, name: str) -> None:
    last = _last(end.replace("TRACEBACK\n", TRACEBACK))
    assert (last.line, last.name, last.frame, last.caught) == (line, name, "lib/model.py:9", False)


@examples("below", "frame")
def test_the_frame_of_an_end_is_the_innermost_one_of_the_program(below: str, frame: str) -> None:
    last = _last(TRACEBACK + below)
    assert last.frame == frame


@examples("handled", "link", "root")
def test_a_lookup_that_found_nothing_is_not_what_ended_the_program(handled: str, link: str, root: str) -> None:
    last = _last(f"{TRACEBACK}{handled}\n\n{link}\n\n{TRACEBACK}pkg.MeshError: no such leaf\n")
    assert last.name == root


@examples("end", "line")
def test_the_last_words_of_a_build_or_a_script_are_its_end(end: str, line: int | None) -> None:
    assert ends.last_error(end.split("\n")) == line


@examples("end", "line")
def test_a_program_says_last_that_its_work_is_done(end: str, line: int) -> None:
    texts = end.split("\n")
    last = ends.above_epilogue(texts, len(texts) - 1)
    assert (last if ends.says_done(texts[last]) else -1) == line


@examples("end")
def test_a_traceback_that_ended_nothing_is_no_end(end: str) -> None:
    last = _last(end.replace("TRACEBACK\n", TRACEBACK).replace("OF A REQUEST\n", OF_A_REQUEST))
    assert last is None or last.caught


GLOG = "E0731 02:52:54.57{:04} 140295433873152 base_runner.py:258] "
LOGGED = "2026-03-01 10:00:00,123 ERROR [core.py:710] "


@pytest.mark.parametrize(
    ("above", "front", "below", "ended"),
    [
        ("trainer done", GLOG, "", True),
        ("trainer done", GLOG.replace("54.57{:04}", "5{}.57"), "", False),
        ("trainer done", GLOG.replace("E", "W", 1), "", False),
        ("trainer done", GLOG, "I0731 02:53:01.000001 140295433873152 trainer.py:9] step 7", False),
        ("the engine starts", LOGGED, "", True),
        (f"{LOGGED}request 7 failed", LOGGED, "", False),
        (f"{LOGGED}a fatal error", LOGGED, "", True),
        ("the engine starts", LOGGED.replace("ERROR", "INFO"), "", False),
        ("ERROR request 7 failed", "", "", False),
        ("ERROR root: fatal error, leaving", "", "", True),
    ],
    ids=["glog", "over several seconds", "glog warns", "the program goes on", "a logger", "of a request", "fatal",
         "a remark", "a request below its head", "fatal below its head"],
)  # fmt: skip
def test_a_traceback_that_a_logger_printed_last_is_an_end(above: str, front: str, below: str, ended: bool) -> None:
    message = "lib.InvalidArgumentError: from a task:\n" + ("no such kernel\n\t [[while]]\n" if front else "")
    lines = (f"{OF_A_REQUEST}{message}").splitlines()
    last = _last("\n".join([above, *(front.format(at) + line for at, line in enumerate(lines)), below]))
    assert (last is not None and (last.name, last.line, last.caught) == ("InvalidArgumentError", 6, False)) is ended


@given(st.text(max_size=400), st.integers(0, 300))
def test_any_end_of_a_text_is_looked_at_without_an_exception(data: str, cut: int) -> None:
    _last(data)
    _last((TRACEBACK + "ValueError: no\n")[cut:] + data)
    _last(f"{LOGGED}{TRACEBACK.replace(chr(10), chr(10) + LOGGED)}ValueError: no\n"[cut:] + data)


BAR = "\r".join(f"Epoch 0: {at:3}%|#| {at}/100 [00:10<01:13,  1.19it/s]" for at in range(100))
KILLED = "srun: error: n1: task 3: Killed"


def test_what_stands_behind_the_redraws_of_a_bar_is_a_line_of_a_job() -> None:
    assert holds_job_lines(f"{BAR}\r{KILLED}\r{BAR}\n".encode())
    assert not holds_job_lines(f"{BAR}\n".encode())


def test_the_word_of_a_shell_on_a_killed_command_counts_below_its_prompt_or_as_the_last_of_a_text() -> None:
    assert holds_job_lines(b"step 1 loss 2\nKilled\n")
    assert holds_job_lines(b"$ python train.py\nKilled\n$ vi train.py\n")
    assert not holds_job_lines(b"step 1 loss 2\nKilled\nstep 2 loss 1\n")
    assert not holds_job_lines(b"$ pkill python\nKilled\n")


@examples("text", "exceptions")
def test_what_a_client_tries_again_after_ended_nothing(text: str, exceptions: list[str]) -> None:
    lines = text.replace("TRACEBACK\n", TRACEBACK).split("\n")
    assert [lines[at] for at in sorted(ends.handled_exceptions(lines))] == exceptions


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("address port: 29500, useIpv6: 1, code: -98, name: EADDRINUSE", {"taken_port": "29500"}),
        ("[Errno 98] while attempting to bind on ('0.0.0.0', 8000): address already in use", {"taken_port": "8000"}),
        ("OSError: [Errno 98] Address already in use", {}),
        ("ConnectionRefusedError: [Errno 111] Connect call failed ('10.0.0.7', 8000)", {"peer away": "1"}),
        ("RuntimeError: the stream was refused", {}),
        ("RuntimeError: XPU out of memory. Tried to allocate 2 MiB (XPU 3; 64 GiB total capacity; 1 MiB free)",
         {"out of memory": "1", "no gpu memory": "1", "full_gpu": "3"}),
        ("RuntimeError: Pool out of memory.", {"out of memory": "1"}),
    ],
)  # fmt: skip
def test_what_a_line_names_beside_its_kind(text: str, facts: dict[str, str]) -> None:
    assert ends.facts_of(text) == facts


# --- What lines of a job's programs say: the store where ranks meet, ends of processes, calls that differ, lost peers
#


LISTEN = "The server socket has failed to"


@examples("text", "kind", "advice")
def test_a_store_without_name_port_or_answer_is_an_error_with_its_own_advice(text: str, kind: str, advice: str) -> None:
    pair = said_of(text)
    assert pair[0] == kind
    assert advice in advice_by_words(text)


@examples("text")
def test_a_port_that_another_process_has_ends_the_one_that_wants_it(text: str) -> None:
    assert said_of(text) == ("ended", {"how": "port taken"})
    assert said_of(f"{LISTEN} bind to [::]:29500 (errno: 97 - Address family not supported by protocol).") == (
        "connect",
        {},
    )


NO_FAMILY = "[W socket.cpp:401] [c10d] The server socket cannot be initialized on [::]:29500 (errno: {})."


def test_an_address_family_that_the_host_lacks_is_gone_past() -> None:
    assert said_of(NO_FAMILY.format("97 - Address family not supported by protocol")) == ("note", {})
    files = said_of(NO_FAMILY.format("24 - Too many open files"))
    assert files is None or files[0] != "note"


# --- ends of one process in the words of interpreters, shells and launchers -----------------------------------


@examples("text", "named")
def test_a_line_says_how_one_process_ended(text: str, named: dict[str, str]) -> None:
    kind, said = said_of(text) or ("", {})
    assert kind == "ended"
    assert {name: said.get(name, "") for name in named} == named


@examples("text")
def test_what_is_listed_raised_in_source_or_still_running_is_no_end(text: str) -> None:
    assert end_of(text) is None


def test_the_rank_of_an_exception_without_a_message_is_the_one_in_front() -> None:
    for front, rank in (("[rank3]: ", "3"), ("2025-10-31 03:11:02 [rank12]: ", "12"), ("", "")):
        table, row = application(f"{front}AssertionError") or ("", {})
        assert (table, row["label"]) == ("event", rank)


# --- words of frameworks for ranks whose calls differ, and texts in which the same words tell of nothing wrong


@examples("text")
def test_a_placement_group_that_ray_cannot_make_has_no_room(text: str) -> None:
    assert (said_of(text) or ("", {}))[1].get("how") == "no room"
    assert said_of("INFO that placement group creation timed out is met by another trial") is None
    assert said_of("INFO No current placement group found. Creating a new placement group.") is None


@examples("text")
def test_the_same_words_without_a_difference_accuse_nobody(tmp_path: Path, text: str) -> None:
    assert loud(tmp_path, text + "\n") == []
    pair = said_of(text)
    assert pair is None or "told" not in pair[1]


# --- A peer that is not reached is read by the system's error and by whom it was, whichever program says it ---


@examples("text", "why", "peer")
def test_the_error_and_the_peer_are_read_in_any_tool(text: str, why: str, peer: str) -> None:
    assert (why_unreached(text), peer_of(text)) == (why, peer)


@examples("text")
def test_what_is_tried_again_fetched_or_no_attempt_is_none(text: str) -> None:
    pair = said_of(text)
    assert pair is None or "why" not in pair[1]


def test_a_peer_that_refuses_was_reached_but_for_the_bridge_of_each_host() -> None:
    assert said_of("oob_tcp: connect to 10.4.0.2:4000 failed: Connection refused") is None
    assert said_of("oob_tcp: connect to 172.17.0.1:4000 failed: Connection refused") == (
        "connect",
        {"peer": "172.17.0.1", "why": "own"},
    )


# --- what schedulers, clouds and launchers say of a job that they ended ---------------------------------------


@examples("text", "how")
def test_a_line_says_who_ended_the_job(text: str, how: str) -> None:
    kind, named = said_of(text) or ("", {})
    assert (kind, named.get("how")) == ("ended", how)


@examples("text")
def test_what_a_text_explains_or_sets_is_no_end(text: str) -> None:
    assert said_of(text) is None
