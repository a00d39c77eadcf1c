"""A torn record's rest in front of a host makes no host of its own."""

from tests.evidence.nccl_log.line_by_line import extract_plain
from topodiag.evidence.nccl_log.rebuild.torn_hosts import whole_hosts


def hosts(data: bytes) -> list[str]:
    return sorted(set(whole_hosts(extract_plain(data, 0, 0))["threads"].values("host")))


def lines(host: str, count: int, pid: int = 1) -> bytes:
    return b"".join(f"{host}:{pid}:{pid} [0] NCCL INFO Using network N{index}\n".encode() for index in range(count))


def test_a_torn_rest_is_taken_off_a_host_that_the_process_is_known_by() -> None:
    torn = b"recvbuff 0x5f9d550ebgpu-a:1:1 [0] NCCL INFO Using network IB\n"
    assert hosts(lines("gpu-a", 40) + torn) == ["gpu-a"]


def test_the_end_of_a_torn_head_is_given_back_its_beginning() -> None:
    torn = b"n0:1:1 [0] NCCL INFO Using network IB\n"
    assert hosts(lines("x3207c0s25b0n0", 40) + torn) == ["x3207c0s25b0n0"]
    other_thread = b"n0:1:2 [0] NCCL INFO Using network IB\n"
    assert hosts(lines("x3207c0s25b0n0", 40) + other_thread) == ["n0", "x3207c0s25b0n0"]


def test_another_process_id_keeps_its_host() -> None:
    assert hosts(lines("gpu-a", 40) + lines("0gpu-a", 1, pid=2)) == ["0gpu-a", "gpu-a"]


def test_hosts_that_say_about_as_much_are_both_real() -> None:
    assert hosts(lines("gpu-1", 40) + lines("big-gpu-1", 40)) == ["big-gpu-1", "gpu-1"]
    assert hosts(lines("gpu-1", 3) + lines("big-gpu-1", 3)) == ["big-gpu-1", "gpu-1"]


def test_one_host_is_left_alone() -> None:
    facts = extract_plain(lines("gpu-a", 3), 0, 0)
    assert whole_hosts(facts) is facts


def test_a_head_that_lost_its_middle_is_whole_again() -> None:
    torn = b"x3207c0sn0:1:1 [0] NCCL INFO Using network IB\n"
    assert hosts(lines("x3207c0s25b0n0", 40) + torn) == ["x3207c0s25b0n0"]
    assert hosts(lines("worker-11", 40) + lines("worker-1", 1)) == ["worker-1", "worker-11"]
    assert hosts(lines("x3207c0s25b0n0", 2) + torn) == ["x3207c0s25b0n0", "x3207c0sn0"]
