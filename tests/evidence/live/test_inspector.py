"""Records of NCCL's Inspector: aggregated by communicator while they are read, whatever release wrote them."""

import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.files import laid
from tests.tables import examples
from topodiag.app.logs import logs
from topodiag.evidence.intake.kind_of_file import kind_of_file
from topodiag.evidence.kinds import Kind
from topodiag.evidence.live.inspector import InspectorReader
from topodiag.evidence.live.inspector_calls import Calls, Records
from topodiag.model.errors import InputError
from topodiag.model.inspector import Inspection, InspectorCommunicator

HOUR_US = 3_600_000_000


def record(rank: int, number: int, us: float, **other: Any) -> dict[str, Any]:
    """One record as NCCL 2.30 writes it."""
    algobw = (1 << 26) / us / 1e3 if us else 0.0
    own = {
        "header": {"id": "0x7f8c496ae9f661", "comm_name": "dp_0", "rank": rank, "n_ranks": 4, "nnodes": 2},
        "metadata": {
            "inspector_output_format_version": "v4.0", "git_rev": "9019a1912",
            "dump_timestamp_us": 485_000 * HOUR_US, "hostname": f"node{rank // 2}", "pid": 4000 + rank,
        },
        "coll_perf": {
            "coll": "AllReduce", "coll_sn": number, "coll_msg_size_bytes": 1 << 26, "coll_exec_time_us": us,
            "coll_timing_source": "kernel_gpu", "coll_algobw_gbs": algobw, "coll_busbw_gbs": 1.5 * algobw,
        },
    }  # fmt: skip
    for part, values in other.items():
        own[part] = {**own.get(part, {}), **values}
    return own


def text(records: Sequence[Any]) -> bytes:
    return "".join(json.dumps(each, separators=(",", ":")) + "\n" for each in records).encode()


def inspection(*files: bytes) -> Inspection:
    reader = InspectorReader()
    for number, data in enumerate(files):
        reader.read([data], f"node-pid{number}.log")
    return reader.found()


def job(calls: int = 40, late: int = 1) -> list[bytes]:
    """Four ranks; rank `late` enters each call 300 us after the others, so that its kernels are 300 us shorter."""
    return [text([record(rank, n, 1000 - 300 * (rank == late)) for n in range(calls)]) for rank in range(4)]


def test_calls_are_matched_by_communicator_collective_and_number_over_the_files_of_the_ranks() -> None:
    dump = inspection(*job())
    (comm,) = dump.communicators
    assert (comm.hash, comm.name, comm.nranks, comm.nnodes) == (0x7F8C496AE9F661, "dp_0", 4, 2)
    assert [(m.host, m.pid) for m in comm.members.values()] == [
        ("node0", 4000), ("node0", 4001), ("node1", 4002), ("node1", 4003),
    ]  # fmt: skip
    assert (dump.records, comm.calls, comm.missing) == (160, 40, 0)
    assert comm.last.keys() == {1}
    assert comm.last[1].times == 40
    assert comm.wait_us == pytest.approx(40 * 225)  # the mean over four of 300 us
    (size,) = comm.sizes
    assert (size.collective, size.bytes, size.clean_us) == ("AllReduce", 1 << 26, 700)
    assert size.busbw_gbs == pytest.approx((1 << 26) / 700 / 1e3 * 1.5)
    assert size.busbw_mid_gbs == pytest.approx((1 << 26) / 1000 / 1e3 * 1.5)


def test_the_size_of_an_all_gather_is_that_of_one_rank_and_its_bandwidth_counts_all() -> None:
    busbw = 4 * (1 << 26) / 1000 / 1e3 * 3 / 4
    perf = {"coll": "AllGather", "coll_algobw_gbs": busbw * 4 / 3, "coll_busbw_gbs": busbw}
    ((size,),) = [
        comm.sizes
        for comm in inspection(
            *[text([record(rank, n, 1000.0, coll_perf=perf) for n in range(40)]) for rank in range(4)]
        ).communicators
    ]
    assert size.busbw_gbs == pytest.approx(busbw)


@examples("other")
def test_patched_verbose_and_older_forms_are_read_by_their_keys(other: dict[str, Any]) -> None:
    files = [text([record(rank, n, 900, **other) for n in range(25)]) for rank in range(2)]
    dump = inspection(*files)
    assert (dump.records, dump.unread, dump.untimed) == (50, 0, 0)
    assert dump.communicators[0].calls == 25


def test_the_first_release_has_no_names_of_communicators() -> None:
    old = record(0, 1, 900)
    del old["header"]["comm_name"]
    assert inspection(text([old])).communicators[0].name == ""


def test_one_bad_line_costs_itself() -> None:
    block = b"\n".join([*job()[0].splitlines()[:5], b'{"header":{"id":"0x7f8c', b"torn", *job()[0].splitlines()[5:]])
    dump = inspection(block)
    assert (dump.records, dump.unread) == (40, 2)


def test_times_of_the_cpu_are_counted_and_not_used() -> None:
    files = [
        text([record(r, n, 9, coll_perf={"coll_timing_source": "collective_cpu"}) for n in range(30)]) for r in (0, 1)
    ]
    dump = inspection(*files)
    assert (dump.untimed, dump.communicators[0].calls) == (60, 0)


def test_sends_and_receives_are_counted_and_not_judged() -> None:
    send = {"header": record(0, 0, 0)["header"], "metadata": record(0, 0, 0)["metadata"]}
    send["p2p_perf"] = {"p2p": "Send", "p2p_sn": 1, "p2p_peer": 3, "p2p_exec_time_us": 9}
    dump = inspection(text([send, send, record(0, 1, 9)]))
    assert (dump.transfers, dump.records, dump.unread) == (2, 1, 0)


def test_numbers_that_a_rank_did_not_record_are_missing() -> None:
    block = text([record(0, n, 9) for n in (0, 1, 5, 9)])
    assert inspection(block).missing == 6


def test_a_number_out_of_all_order_costs_itself() -> None:
    files = [text([*(record(r, n, 900) for n in range(25)), record(r, 1 << 50, 900)]) for r in (0, 1)]
    assert inspection(*files).communicators[0].calls == 25


def test_where_calls_exceed_the_memory_every_second_one_is_kept_and_shares_stay() -> None:
    import numpy as np  # noqa: PLC0415

    calls = Calls(most=3000)
    count = 10_000
    for rank in range(4):
        for start in range(0, count, 500):
            numbers = np.arange(start, start + 500)
            times = np.full(500, 700.0 if rank == 2 else 1000.0, np.float32)
            own = Records(numbers, times, np.full(500, 1 << 20), np.full(500, 485_000, np.int32))
            calls.add(1, "AllReduce", rank, own, 1.5)
    communicator = calls.summed(InspectorCommunicator(1, "", 4, 1, {}), 4)
    assert calls.one_in >= 4
    assert abs(communicator.calls - count) < 0.1 * count
    assert communicator.last.keys() == {2}
    assert communicator.sizes[0].clean_us == 700


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
def test_the_front_door_knows_them_by_their_keys_whatever_the_file_is_called(tmp_path: Path, packed: bool) -> None:
    texts = {f"any{at}": gzip.compress(data) if packed else data for at, data in enumerate(job(200))}
    result = logs([str(laid(tmp_path, texts))])
    assert {item.kind for item in result.inputs} == {"nccl-inspector"}
    assert [finding.id for finding in result.findings] == ["JOB008"]
    assert any("8192" in gap.why for gap in result.not_observed)


@pytest.mark.parametrize("whole", [False, True], ids=["cut", "after NULs"])
def test_files_that_were_cut_or_truncated_while_written_are_read(tmp_path: Path, whole: bool) -> None:
    """`copytruncate` of logrotate leaves NULs up to where the program writes on."""
    texts = {f"any{at}": b"\0" * (200_000 * whole) + data[137:-91] for at, data in enumerate(job(200))}
    result = logs([str(laid(tmp_path, texts))])
    assert [finding.id for finding in result.findings] == ["JOB008"]
    assert any("8 lines without a record" in gap.why for gap in result.not_observed)


def test_rotated_files_in_a_folder_of_each_node_are_one_job(tmp_path: Path) -> None:
    for number, data in enumerate(job(200)):
        lines = data.splitlines(keepends=True)
        folder = tmp_path / "job_77" / f"node{number // 2}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"n-pid{number}.log.2.gz").write_bytes(gzip.compress(b"".join(lines[:50])))
        (folder / f"n-pid{number}.log.1").write_bytes(b"".join(lines[50:120]))
        (folder / f"n-pid{number}.log").write_bytes(b"".join(lines[120:]))
    (inspector_communicator,) = logs([str(tmp_path)]).jobs[0].inspection.communicators  # type: ignore[union-attr]
    assert (inspector_communicator.calls, inspector_communicator.missing, len(inspector_communicator.members)) == (
        200,
        0,
        4,
    )


def test_what_only_looks_alike_is_none() -> None:
    assert Kind.INSPECTOR not in kind_of_file(b'{"coll_perf": 3}\n').kinds
    assert Kind.INSPECTOR not in kind_of_file(b'x {"header":{},"coll_perf":{}}\n').kinds


def test_records_that_say_nothing_of_their_rank_are_an_error_in_one_line(tmp_path: Path) -> None:
    place = tmp_path / "x.log"
    place.write_bytes(b'{"header":{"id":"zz"},"coll_perf":{"coll":"AllReduce"}}\n')
    with pytest.raises(InputError):
        logs([str(place)])
