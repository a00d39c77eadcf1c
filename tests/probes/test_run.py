"""A command costs its own result and nothing else, however it behaves."""

import os
import time
from pathlib import Path
from typing import Any

from tests.tables import examples
from topodiag_probes.run import Finished, Groups, LineSink, Sink, run

SLACK_S = 3.0


def _run(argv: list[str], seconds: float = 10.0, limit: int = 1 << 20, groups: Groups | None = None) -> Finished:
    return run(argv, dict(os.environ), end=time.monotonic() + seconds, limit=limit, groups=groups or Groups())


def _is_gone(pid: int) -> bool:
    """Whether a process has ended, given a moment; a zombie has."""
    for _ in range(100):
        try:
            if Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z":
                return True
        except OSError:
            return True
        time.sleep(0.02)
    return False


@examples("script", "limit", "wanted")
def test_a_command_is_told_as_it_ended(stub, script: str, limit: int | None, wanted: dict[str, Any]):
    """What it printed, in Latin-1, or how much of it."""
    done = _run([str(stub("tool", script))], limit=limit or 1 << 20)
    shown = {name: getattr(done, name) for name in ("status", "rc", "why", "truncated")}
    shown |= {"out": done.stdout.decode("latin-1"), "err": done.stderr.decode("latin-1"), "printed": len(done.stdout),
              "few_errors": len(done.stderr) <= 16384}  # fmt: skip
    assert {name: shown[name] for name in wanted} == wanted


def test_a_file_that_is_no_program_is_an_error_and_a_missing_one_absent(stubs: Path):
    (stubs / "text").write_text("no program")
    assert _run([str(stubs / "text")]).status == "denied"
    assert _run([str(stubs / "nothing")]).status == "absent"


@examples("script")
def test_a_command_that_hangs_is_killed_and_keeps_what_it_printed(stub, script: str):
    begun = time.monotonic()
    done = _run([str(stub("tool", script))], seconds=0.5)
    assert time.monotonic() - begun < 0.5 + SLACK_S
    assert (done.status, done.stdout, done.rc) == ("timeout", b"begun\n", None)


def test_children_of_a_command_that_hangs_are_killed_with_it(stub, tmp_path: Path):
    pid = tmp_path / "pid"
    _run([str(stub("tool", f"trap '' TERM; sleep 600 & echo $! > {pid}; wait; wait"))], seconds=0.5)
    assert _is_gone(int(pid.read_text()))


def test_a_child_left_behind_with_the_pipe_open_is_not_waited_for(stub, tmp_path: Path):
    pid = tmp_path / "pid"
    begun = time.monotonic()
    done = _run([str(stub("tool", f"sleep 600 & echo $! > {pid}; echo out; exit 0"))], seconds=30.0)
    assert time.monotonic() - begun < 5.0
    assert (done.status, done.rc, done.stdout) == ("ok", 0, b"out\n")
    assert "left behind" in done.why
    assert _is_gone(int(pid.read_text()))


def test_nothing_starts_after_everything_was_killed(stub):
    groups = Groups()
    groups.kill_all()
    begun = time.monotonic()
    done = _run([str(stub("tool", "exec sleep 600"))], seconds=30.0, groups=groups)
    assert (done.status, done.rc) == ("error", None)
    assert "tool: " in done.why
    assert time.monotonic() - begun < SLACK_S


def test_a_filtered_stream_keeps_the_first_and_the_latest_lines_that_are_wanted():
    sink = LineSink(400, lambda line: line.startswith(b"keep"))
    for number in range(100):
        sink.feed(b"drop %d\nke" % number)
        sink.feed(b"ep %d\n" % number)
    kept = sink.value().split()[1::2]
    assert kept[0] == b"0"
    assert kept[-1] == b"99"
    assert sink.truncated
    assert len(sink.value()) <= 400


def test_a_filtered_stream_keeps_a_last_line_without_its_end():
    sink = LineSink(400, lambda line: True)
    sink.feed(b"a\nb")
    assert sink.value() == b"a\nb\n"


def test_a_sink_that_is_exactly_full_is_not_truncated():
    sink = Sink(3)
    sink.feed(b"abc")
    assert not sink.truncated
    sink.feed(b"d")
    assert sink.truncated
    assert sink.value() == b"abc"
