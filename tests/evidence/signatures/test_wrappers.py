"""Wrappers of launchers, schedulers and loggers are taken off, and what they say is kept."""

from __future__ import annotations

from math import isnan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topodiag.evidence.signatures.wrappers import members, shared_label, unwrap, without_label

S = "Bootstrap : no socket interface found"


@pytest.mark.parametrize(
    ("line", "text", "host", "rank", "pid"),
    [
        (S, S, "", -1, -1),
        (f"[1,3]<stdout>:{S}", S, "", 3, -1),
        (f"[1,12]<stderr>: {S}", S, "", 12, -1),
        (f"3: {S}", S, "", 3, -1),
        (f" 12: {S}", S, "", 12, -1),
        (f"[rank5]: {S}", S, "", 5, -1),
        (f"[default0]: {S}", S, "", -1, -1),
        (f"(RayWorkerWrapper pid=593, ip=10.0.0.7) {S}", S, "10.0.0.7", -1, 593),
        (f"(Worker_TP0 pid=593) {S}", S, "", -1, 593),
        (f"(ray::Trainer/actor pid=81, ip=10.0.0.4) {S}", S, "10.0.0.4", -1, 81),
        (f"(Worker pid=7) [repeated 3x across cluster] {S}", S, "", -1, 7),
        (f"[pod/trainer-0/main] {S}", S, "trainer-0", -1, -1),
        (f"gpu-001: {S}", S, "gpu-001", -1, -1),
        (f"trainer-0  | {S}", S, "", -1, -1),
        (f"2026-03-02T07:02:11+0000 n1 kernel: {S}", S, "n1", -1, -1),
        (f"Mar  2 07:02:11 n1 slurmstepd[81]: {S}", S, "n1", -1, 81),
        (f"2026-03-02T07:02:11.5Z stdout F {S}", S, "", -1, -1),
        (f" | 2025-05-16T16:39:55.215-07:00 | {S}", S, "", -1, -1),
        (f"[2025-05-10 23:09:41] {S}", S, "", -1, -1),
        (f"\x1b[01;31m\x1b[Kgpu-001\x1b[m\x1b[K: {S}", S, "gpu-001", -1, -1),
        (f'{{"host": "n1", "pid": 81, "msg": "{S}"}}', S, "n1", -1, 81),
        (f'{{"log": "[rank2]: {S}\\n", "stream": "stderr"}}', S, "", 2, -1),
        (f'{{"level": "error", "event": {{"message": "{S}"}}}}', S, "", -1, -1),
        (f"[1,3]<stdout>:[rank3]: gpu-001: {S}", S, "gpu-001", 3, -1),
        ("Error: no such device", "Error: no such device", "", -1, -1),
        ("modprobe: ERROR: could not insert", "modprobe: ERROR: could not insert", "", -1, -1),
        ('{"a": 1}', '{"a": 1}', "", -1, -1),
        ("{broken", "{broken", "", -1, -1),
    ],
)
def test_what_is_left_is_the_sentence(line: str, text: str, host: str, rank: int, pid: int) -> None:
    bare = unwrap(line)
    assert (bare.text, bare.host, bare.rank, bare.pid) == (text, host, rank, pid)


@pytest.mark.parametrize(
    ("line", "seconds"),
    [
        (f"2026-03-02T07:02:11+0000 n1 kernel: {S}", 1772434931.0),
        (f"2026-03-02T09:02:11+02:00 n1 kernel: {S}", 1772434931.0),
        (f"2026-03-02 07:02:11,250 {S}", 1772434931.25),
        (f"[ 8122.400000] {S}", 8122.4),
        (f'{{"__REALTIME_TIMESTAMP": "1772434931000000", "MESSAGE": "{S}"}}', 1772434931.0),
        (f'{{"ts": 1772434931.5, "msg": "{S}"}}', 1772434931.5),
        (f"2026-13-45T99:02:11Z stdout F {S}", None),
        (S, None),
    ],
)
def test_the_time_before_a_line_is_read(line: str, seconds: float | None) -> None:
    read = unwrap(line).time_s
    assert isnan(read) if seconds is None else read == seconds


@given(st.text(max_size=300))
def test_any_line_is_unwrapped_without_an_exception(line: str) -> None:
    unwrap(line)


def test_an_event_inside_an_object_is_a_sentence_with_its_host_and_device() -> None:
    inner = f'{{"message": "{S}", "entities": [{{"type": "PCI", "value": "0000:c3:00"}}], "nodeName": "n7"}}'
    [member] = members(f'{{"msg": "x", "event": {inner}}}')
    assert (member.text, member.host, member.bus_id) == (S, "n7", "0000:c3:00")
    assert members(S) == []


LABELLED = {
    "mpirun": ["[1,0]<stdout>:a", "[1,0]<stderr>:b"],
    "srun": ["0: a", "0:"],
    "pod": ["[pod/train-0/main] a", "[pod/train-0/main] b"],
    "cri": ["2026-03-01T11:00:01.5Z stdout F a", "2026-03-01T11:00:02.5Z stderr F b"],
    "syslog": ["Mar 01 11:00:01 n1 train[47]: a", "Mar 01 11:00:02 n1 train[47]: b"],
    "compose": ["trainer-1  | a", "trainer-1  |"],
}
UNLABELLED = {
    "one line": ["trainer-1  | a"],
    "two containers": ["trainer-1  | a", "trainer-2  | b"],
    "two ranks": ["0: a", "1: b"],
    "numbered interfaces": ["1: lo: <LOOPBACK>", "2: eth0: <UP>"],
    "a line without": ["trainer-1  | a", "b"],
    "two programs": ["Mar 01 11:00:01 n1 train[47]: a", "Mar 01 11:00:02 n1 sshd[9]: b"],
    "the kernel's own": ["Mar  1 11:00:01 n1 kernel: a", "Mar  1 11:00:02 n1 kernel: b"],
}


@pytest.mark.parametrize("name", LABELLED)
def test_a_label_that_all_lines_share_is_known_and_taken_off(name: str) -> None:
    assert shared_label(LABELLED[name]) == name
    assert [line.strip() for line in map(without_label(name), LABELLED[name])] in (["a", "b"], ["a", ""])


@pytest.mark.parametrize("lines", UNLABELLED.values(), ids=UNLABELLED)
def test_what_not_all_lines_share_is_no_label(lines: list[str]) -> None:
    assert shared_label(lines) == ""


def test_a_label_of_another_container_stays() -> None:
    bare = without_label("compose")
    assert [bare(line) for line in ("trainer-1 | a", "web-1 | b", "c", "trainer-1 | d")] == ["a", "web-1 | b", "c", "d"]
