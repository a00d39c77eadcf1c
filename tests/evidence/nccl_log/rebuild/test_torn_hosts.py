"""A torn record's rest in front of a host makes no host of its own."""

from tests.evidence.nccl_log.line_by_line import extract_plain
from tests.tables import examples
from topodiag.evidence.nccl_log.rebuild.frame import whole_hosts


def lines(host: str, count: int) -> bytes:
    return b"".join(f"{host}:1:1 [0] NCCL INFO Using network N{index}\n".encode() for index in range(count))


@examples("whole", "torn", "hosts")
def test_a_torn_record_makes_no_host_of_its_own(whole: list[tuple[str, int]], torn: str, hosts: list[str]) -> None:
    data = b"".join(lines(host, count) for host, count in whole)
    if torn:
        data += f"{torn} [0] NCCL INFO Using network IB\n".encode()
    assert sorted(set(whole_hosts(extract_plain(data, 0, 0))["threads"].values("host"))) == hosts


def test_one_host_is_left_alone() -> None:
    facts = extract_plain(lines("gpu-a", 3), 0, 0)
    assert whole_hosts(facts) is facts
