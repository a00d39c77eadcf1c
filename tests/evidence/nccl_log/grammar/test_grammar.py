"""Messages of NCCL 2.3 to 2.30 and what each becomes."""

from math import isnan
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topodiag.evidence.nccl_log.grammar.grammar import KINDS, START, kind_by_start, parse
from topodiag.evidence.nccl_log.grammar.texts import NOISE, PATTERNS, STARTS
from topodiag.evidence.nccl_log.tables.facts import SCHEMAS


def row(message: str, name: str, level: str = "INFO") -> dict[str, Any]:
    rows = parse(level, message)
    assert rows is not None, message
    assert [each for each, _ in rows] == [name]
    return dict(rows[0][1])


def some(columns: dict[str, Any], *names: str) -> tuple[Any, ...]:
    return tuple(columns[each] for each in names)


WHERE = "rank 2 nranks 16 cudaDev 2 nvmlDev 2 busId 4b000"


@pytest.mark.parametrize(
    ("message", "event", "func"),
    [
        ("comm 0x56 rank 2 nranks 16", "start", ""),
        ("comm 0x56 rank 2 nranks 16 cudaDev 2 nvmlDev 6", "start", ""),
        ("comm 0x56 rank 2 nranks 16 - COMPLETE", "complete", ""),
        ("comm 0x56 rank 2 nranks 16 cudaDev 2 nvmlDev 2 - Init COMPLETE", "complete", ""),
        ("comm 0x56 rank 2 nranks 16 cudaDev 2 busId 4b000 - Init COMPLETE", "complete", ""),
        (f"comm 0x56 {WHERE} commId 0x9f - Init START", "start", ""),
        (f"ncclCommInitRank comm 0x56 {WHERE} commId 0x9f - Init COMPLETE", "complete", "ncclCommInitRank"),
        (f"[Rank 2] ncclCommInitAll comm 0x56 {WHERE} commId 0x9f - Init START", "start", "ncclCommInitAll"),
        (f"ncclCommSplit comm 0x56 {WHERE} parent 0x57 color 3 key 0- Init START", "start", "ncclCommSplit"),
        ("comm 0x56 rank 2 nranks 16 cudaDev 2 busId 4b000 localSize 296 used 30112 bytes on core 12 - Init COMPLETE",
         "complete", ""),
        ("comm 0x56 rank 2 nranks 16 cudaDev 2 busId 4b000 - Destroy COMPLETE", "destroy", ""),
        ("comm 0x56 rank 2 nranks 16 cudaDev 2 busId 4b000 - Abort COMPLETE", "abort", ""),
        ("comm 0x56 rank 2 nRanks 16 cudaDev 2 busId 4b000 - Revoke COMPLETE, result 0", "revoke", ""),
        ("comm 0x56 rank 2 nRanks 16 nNodes 2 localRanks 8 localRank 2 MNNVL 0", "member", ""),
    ],
)  # fmt: skip
def test_every_spelling_of_a_communicators_life_is_an_init_row(message: str, event: str, func: str) -> None:
    columns = row(message, "init")
    assert some(columns, "ctx", "event", "func", "rank", "nranks") == (0x56, event, func, 2, 16)


def test_a_split_names_its_parent_count_color_and_key() -> None:
    for word in ("splitCount", "childCount"):
        columns = row(f"ncclCommSplit comm 0x56 {WHERE} parent 0x57 {word} 1 color 3 key 4- Init START", "init")
        assert some(columns, "parent", "split", "color", "key", "comm_id") == (0x57, 1, 3, 4, 0)
        assert some(columns, "bus_id", "cuda_dev", "nvml_dev") == (0x4B000, 2, 2)


@pytest.mark.parametrize(
    "message", ["comm 0x56 rank 2 nranks", "comm 0x56 rankSetting up", "comm 0x56 rank 2 nranks 16 cudaDev"]
)
def test_a_torn_communicator_line_is_not_understood(message: str) -> None:
    assert parse("INFO", message) is None


def test_timings_are_seconds_by_phase_and_unknown_where_not_printed() -> None:
    old = row("Init timings: rank 2 nranks 16 total 1.84 (kernels 0.21, bootstrap 0.31, rest 0.04)", "timing")
    assert some(old, "func", "rank", "total", "bootstrap", "rest") == ("", 2, 1.84, 0.31, 0.04)
    assert isnan(old["alloc"])
    new = row("Init timings - ncclCommSplit: rank 0 nranks 4 total 0.1 (kernels 0.0, alloc 0.05)", "timing")
    assert some(new, "func", "alloc") == ("ncclCommSplit", 0.05)


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        # via, net_dev, proxy, direction, conn, dev, peer, peer_dev
        ("Ring 00 : 0[1] -> 1[2] via P2P/IPC", ("P2P/IPC", -1, -1, 0, -1, 1, 1, 2)),
        ("Ring 00 : 0 -> 4 via NET/IB/0/GDRDMA", ("NET/IB/GDRDMA", 0, -1, 0, -1, -1, 4, -1)),
        ("Channel 00 : 0[1a000] -> 1[c1000] via direct shared memory",
         ("SHM/direct", -1, -1, 0, -1, 0x1A000, 1, 0xC1000)),
        ("Channel 00 : 0[40] -> 1[1e0] via P2P/indirect/2[3d000]/read",
         ("P2P/indirect/read", -1, 2, 0, -1, 64, 1, 0x1E0)),
        ("Channel 00/1 : 0[0] -> 11[3] [send] via NET/IB/3(5)/GDRDMA(PCI)/Shared",
         ("NET/IB/GDRDMA(PCI)/Shared", 3, 5, 1, 1, 0, 11, 3)),
        ("Channel 00/0 : 0[0] -> 11[3] [receive] via NET/IB/3/GDRDMA(PCI)/Shared/flush=Always",  # 2.31
         ("NET/IB/GDRDMA(PCI)/Shared", 3, -1, 2, 0, 0, 11, 3)),
        ("Channel 00/0 : 0[0] -> 11[3] [receive] via NET/IB/3/GDRDMA/flush=C2c",
         ("NET/IB/GDRDMA", 3, -1, 2, 0, 0, 11, 3)),
        ("Channel 00/0 : 0[0] -> 11[10] [receive] via NET/AWS Libfabric/12/GDRDMA",
         ("NET/AWS Libfabric/GDRDMA", 12, -1, 2, 0, 0, 11, 10)),
        ("Channel 00/0 : 0[0] -> 1[3] via P2P/direct pointer/read", ("P2P/direct pointer/read", -1, -1, 0, 0, 0, 1, 3)),
        ("Channel 00 : 0[0] -> 1[3] via SHM/direct/direct", ("SHM/direct/direct", -1, -1, 0, -1, 0, 1, 3)),
        ("Channel 00/0 : 0[0] -> 1[3] via P2P/IPC comm 0x7f nRanks 08", ("P2P/IPC", -1, -1, 0, 0, 0, 1, 3)),
        ("CollNet 00/0 : 0 [send] via COLLNET/SHARP/0/GDRDMA", ("COLLNET/SHARP/GDRDMA", 0, -1, 1, 0, -1, -1, -1)),
    ],
)  # fmt: skip
def test_every_spelling_of_a_connection_is_a_conn_row(message: str, expected: tuple[Any, ...]) -> None:
    columns = row(message, "conn")
    assert some(columns, "via", "net_dev", "proxy", "direction", "conn", "dev", "peer", "peer_dev") == expected
    assert some(columns, "rank", "channels") == (0, 1)


@pytest.mark.parametrize(
    "end", ["P2P/CUMEM/", "NET/IB/", "NET/AWS Libfabric/1/", "NET/IB/0/GDRD", "[send", "P2P/IPCa b"]
)
def test_a_torn_connection_is_not_understood(end: str) -> None:
    assert parse("INFO", f"Channel 00/0 : 0[0] -> 1[1] via {end}") is None


def test_channels_above_63_share_the_last_bit() -> None:
    assert row("Channel 70/0 : 0[0] -> 1[1] via P2P/CUMEM", "conn")["channels"] == 1 << 63
    assert row("Channel 08/0 : 0[0] -> 1[1] via P2P/CUMEM", "conn")["channels"] == 1 << 8


def test_rings_and_trees_name_their_neighbours_with_any_tail() -> None:
    ring = row("Ring 02 : 3 -> 0 -> 1 comm 0x5 nRanks 08 busId c1000", "ring")
    assert some(ring, "prev", "rank", "next", "channels") == (3, 0, 1, 4)
    tree = row("Tree 0 : -1 -> 0 -> 1/2/-1", "tree")
    assert some(tree, "up", "rank", "d0", "d1", "d2", "channels", "second") == (-1, 0, 1, 2, -1, 1, 0)


def trees(message: str) -> list[tuple[Any, ...]]:
    rows = parse("INFO", message) or []
    assert {name for name, _ in rows} <= {"tree"}
    return [some(columns, "up", "rank", "d0", "d1", "d2", "channels", "second") for _, columns in rows]


def test_equal_trees_of_one_line_are_one_row() -> None:
    assert trees("Trees [0] 1/-1/-1->0->-1 [1] 1/-1/-1->0->-1 [2] -1/-1/-1->0->1") == [
        (-1, 0, 1, -1, -1, 3, 0),
        (1, 0, -1, -1, -1, 4, 0),
    ]


def test_older_trees_are_read_in_their_own_order() -> None:
    assert trees("Trees [0] 26->25->-1/-1/-1") == [(26, 25, -1, -1, -1, 1, 0)]
    assert trees("Trees [0] 1/-1/-1->0->-1|-1->0->1/-1/-1") == [(-1, 0, 1, -1, -1, 1, 0), (-1, 0, 1, -1, -1, 1, 1)]


def test_the_last_tree_of_a_line_that_may_be_cut_is_not_trusted() -> None:
    text = "Trees" + "".join(f" [{c}] 101/-1/-1->100->112" for c in range(40))
    assert sum(bin(mask).count("1") for *_, mask, _ in trees(text)) == 39


@pytest.mark.parametrize(
    ("message", "nchannels", "count", "cut"),
    [
        ("Channel 00/16 :    0   1   2", 16, 3, False),
        ("Channel 00 :   0   1", -1, 2, False),
        ("Channel 00/02 : 0 1 10 1...", 2, 3, True),
        ("Channel 00/02 : 0 1 10 ...", 2, 3, True),
        ("Channel 00/02 :  " + "".join(f" {r:3d}" for r in range(20)), 2, 20, True),
        ("Channel 00/02 : " + "".join(f" {r:2d}" for r in range(20)), 2, 20, False),
    ],
)
def test_an_order_says_whether_it_is_whole(message: str, nchannels: int, count: int, *, cut: bool) -> None:
    columns = row(message, "order")
    assert some(columns, "nchannels", "cut") == (nchannels, cut)
    assert len(columns["ranks"].split()) == count


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("16 coll channels, 2 p2p channels, 1 p2p channels per peer", (16, -1, -1, 2, 1)),
        ("16 coll channels, 0 nvls channels, 2 p2p channels, 1 p2p channels per peer", (16, -1, 0, 2, 1)),
        ("16 coll channels, 16 collnet channels, 8 nvls channels, 2 p2p channels, 1 p2p channels per peer",
         (16, 16, 8, 2, 1)),
    ],
)  # fmt: skip
def test_channel_counts_are_unknown_where_not_printed(message: str, expected: tuple[int, ...]) -> None:
    assert some(row(message, "channels"), "coll", "collnet", "nvls", "p2p", "per_peer") == expected


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("1024 Bytes -> Algo 1 proto 2 time 12.300000", ("", 1024, "RING", "SIMPLE", -1, -1)),
        ("AllReduce: 1024 Bytes -> Algo 5 proto 0 time 12", ("AllReduce", 1024, "NVLS_TREE", "LL", -1, -1)),
        ("AllReduce: 1024 Bytes -> Algo RING proto LL128 channel{Lo..Hi}={0..15}",
         ("AllReduce", 1024, "RING", "LL128", 0, 15)),
        ("1024 Bytes -> Algo 99 proto 2 time 1", ("", 1024, "99", "SIMPLE", -1, -1)),
    ],
)  # fmt: skip
def test_choices_name_algorithm_and_protocol_whatever_the_version(message: str, expected: tuple[Any, ...]) -> None:
    assert some(row(message, "choice"), "func", "bytes", "algo", "proto", "lo", "hi") == expected


def test_operations_count_in_hex_and_name_their_communicator() -> None:
    message = "opCount 1f sendbuff 0x1 recvbuff (nil) count 12 datatype 7 op 0 root 3 comm 0x56 [nranks=8] stream (nil)"
    columns = row(f"AllReduce: {message}", "op")
    assert some(columns, "ctx", "op_count", "elements", "dtype", "root", "nranks") == (0x56, 31, 12, 7, 3, 8)
    assert row(f"Send: {message}", "op")["op_count"] == -1


@pytest.mark.parametrize(
    "message",
    [
        "=== System : maxBw 12.0 totalBw 13.0 ===",
        "==========================================",
        "CPU/0 (1/1/2)",
        "CPU/0",
        "GPU/1B000 :GPU/1B000 (0/5000.000000/LOC) GPU/43000 (2/240.000000/NVL)",
        "NET/0-3 :GPU/0-8000 (6/3.1/SYS)",
        "+ PCI[24.0] - PCI/0-6000 (10b5874710b58747)",
        "              + XGMI[24.0] - GPU/1",
        " 0 : NET/0 GPU/0 GPU/3 NET/0",
        "10 : GPU/0-1b000",
        "Pattern 4, crossNic 0, nChannels 2, bw 12.0/12.0, type NVL/PIX, sameChannels 1",
        "Latency/AlgBw |    Tree/    LL |",
        " Max NThreads |            512 |",
        "  Algorithm   |      Tree",
        "  Protocol    |   LL | LL128",
        "    Broadcast |     0.0/  0.0 |",
    ],
)
def test_rows_of_the_prints_are_kept_as_they_stand(message: str) -> None:
    assert row(message, "print") == {"text": message}


def test_unwinding_keeps_its_place_and_allocation_is_noise() -> None:
    assert row("init.cc:123 (ncclInit) -> 6", "event") == {
        "level": "UNWIND", "place": "init.cc:123", "text": "init.cc:123 (ncclInit) -> 6",
    }  # fmt: skip
    assert row("group.cc:70 -> 3 [Async thread]", "event")["place"] == "group.cc:70"
    assert parse("INFO", "init.cc:99 Cuda Alloc Size 1 pointer 0x1") == []
    assert row("transport/p2p.cc:12 Cuda failure 'x'", "text")["kind"] == "retry"


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ("NCCL_P2P_LEVEL set from environment to PHB", "setting"),
        ("NCCL_SOCKET_IFNAME set to eth0", "setting"),
        ("NCCL_MIN_CTAS 80 is too low, leaving it set at 2", "ctas"),
        ("NET/AWS Libfabric : GPU Direct RDMA Enabled for HCA 0 'rdmap0'", "gdr hca"),
        ("NET/IB : GPU Direct RDMA Disabled for GPU 0 / HCA mlx5_0 (distance 4 >= 2)", "gdr pair"),
        ("GPU 0 / HCA 1 connected via C2C link", "gdr pair"),
        ("NET/IB : No device found.", "no hca"),
        ("NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB ib0:10.0.0.7<0>", "hcas"),
        ("Using network AWS Libfabric", "network"),
        ("Connected all rings, use ring PXN 0 GDR 1", "connected"),
        ("Rank 3 has color with NCCL_SPLIT_NOCOLOR, not creating a new communicator", "no color"),
        ("Rank 0 has 7 local Net devices (max 8).", "devices"),
        ("Call to ibv_modify_qp failed with 110 Connection timed out, retrying 1/34", "retry"),
    ],
)
def test_other_lines_are_texts_of_a_kind(message: str, kind: str) -> None:
    assert row(message, "text") == {"kind": kind, "text": message}


def test_queue_pairs_that_differ_in_number_only_are_equal_texts() -> None:
    texts = {row(f"NET/IB: Dev 0 Port 1 qpn {qp} mtu 5 GID 3 (0/FF)", "text")["text"] for qp in (112, 9931)}
    assert texts == {"NET/IB: Dev 0 Port 1 qpn # mtu 5 GID 3 (0/FF)"}


def test_every_kind_in_use_is_documented() -> None:
    used = {kind for _, kind in STARTS} | {kind for _, _, kind in PATTERNS}
    assert used - {NOISE} <= set(KINDS)


def test_levels_decide_before_words() -> None:
    assert row("NET/IB : No device found.", "event", "WARN")["level"] == "WARN"
    assert parse("CALL", "ncclGroupEnd()") == []
    assert parse("TRACE", "whatever a debug build says") == []


@given(
    st.sampled_from(["", "Channel 00/0 : ", "comm 0x1 rank ", "Trees [0] ", "Init timings: ", "AllReduce: ", "²"]),
    st.text(alphabet="0123456789abcx/->[]|: \t²٣{}=.,nrk", max_size=80),
)
def test_any_message_gives_rows_of_known_columns(front: str, rest: str) -> None:
    for name, columns in parse("INFO", front + rest) or []:
        assert set(columns) <= {*SCHEMAS[name].names, "op_count"}


@given(
    st.sampled_from([start for start, _ in STARTS] + ["GPU/0-1b000 (3)", "NET/IB : ", "CPU/0", "Trees ", "12 coll "]),
    st.text(alphabet="0123456789abc/->[]|: .GPUCommNETRail", max_size=60),
)
def test_a_kind_that_the_beginning_decides_is_the_kind_of_the_message(start: str, rest: str) -> None:
    message = (start + rest).rstrip()
    kind = kind_by_start(message[:START])
    if kind is not None and len(message) >= START:
        assert parse("INFO", message) == ([] if kind == NOISE else [("text", {"kind": kind, "text": message})])


def test_the_beginning_decides_where_it_can() -> None:
    assert kind_by_start("GPU Direct RDMA Enabled"[:START]) == "gdr pair"
    assert kind_by_start("Connected to proxy"[:START]) is None  # `Connected ` has another kind
    assert kind_by_start("Allocated 4194304"[:START]) == NOISE
    assert kind_by_start("CPU/0-0 (1/1/3)") is None


_SHAPE = st.sampled_from(["1/-1/-1->0->3", "-1/-1/-1->0->1", "2/3->0->-1", "1->0->3", "1->0->3|3->0->1", "x", "1/2"])


@given(st.lists(st.tuples(st.integers(0, 70), _SHAPE), max_size=20))
def test_trees_are_the_same_however_their_line_is_read(trees: list[tuple[int, str]]) -> None:
    line = " ".join(["Trees", *(f"[{channel}] {shape}" for channel, shape in trees)])
    assert parse("INFO", line) == parse("INFO", line + " ")  # a blank at the end is not written by NCCL


def test_what_2_3_prints_of_rings_and_threads_is_understood() -> None:
    assert some(row("Ring 01 :    0   2   1", "order"), "channel", "ranks", "cut") == (1, "0 2 1", False)
    assert row("Using 128 threads", "text")["kind"] == row("Min Comp Cap 3", "text")["kind"] == "threads"
    assert parse("INFO", "rank 0 nranks 2") == []
    assert row("ncclMaxSharedMem 82240 exceeds device/fn maxSharedMem 79856", "text")["kind"] == "benign"
    assert parse("INFO", "Using 128 threads for the data loader") is None


def test_a_notice_of_2_32_is_read_as_information_and_never_as_an_error() -> None:
    assert parse("ATTN", "comm 0x56 rank 2 nranks 16") == parse("INFO", "comm 0x56 rank 2 nranks 16")
    assert parse("ATTN", "Words that no release before had: error 5") == []


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        # 2.31 and 2.32
        ("Mismatched NCCL git versions detected: rank 0 fingerprint 0x1f2e3d4c, rank 3 fingerprint 0x0badcafe",
         "git mismatch"),
        ("algSelection: Ring picked within the selected set", "config"),
        ('config->algSelection "ring" cannot be honored for AllReduce; falling back to automatic selection', "config"),
        ("commHash 0x9f uses config launchOrderImplicit=1 after this CUDA context used the opposite value. Only",
         "config"),
        ("graphStreamOrdering=0 with graphUsageMode=2 (graph mixing) is not supported; falling back", "config"),
        ("Config minCTAs=99 is ignored because value out of bound min/max=[1, 64]", "ctas"),
        ("NCCL_LAUNCH_ORDER_IMPLICIT 7 is not valid, leaving it set at 1", "setting"),
        ("NCCL_NUM_RMA_CTX 0 is too low, leaving it set at 1", "setting"),
        ('NCCL_SOCKET_MAGIC invalid value "x", using built-in default', "setting"),
        ("NCCL_COMM_ID cannot be used with more than one ncclUniqueId", "setting"),
        ("NCCL_NET_PLUGIN list contains more than 16 plugins, ignoring the rest", "setting"),
        ("Unable to recognize NCCL_NETDEVS_POLICY=x, using NCCL_NETDEVS_POLICY_AUTO instead.", "setting"),
        ("Profiler: KernelCh inflight ops exceeded soft cap (inflight=9, cap=8). Check that the profiler plugin is",
         "plugin"),
        ("Detected mixed local Net device counts across ranks (min 4, max 8). Ignoring due to NCCL_IGNORE_NET_",
         "devices"),
        ("Unable to use GIN: Peermem is not supported, nor DMA-BUF.", "gin"),
        ("Unexpected error from ncclSocketReady; terminating the socket connection with 10.0.0.1<1>", "ras"),
        ("Diagnostics: failed to enable peer access to dev 3: peer access is not supported", "ras"),
        ("fallocate: Failed to extend /dev/shm/nccl-1 to 9637892 bytes, error: No space left on device (28) - retrying",
         "retry"),
        ("cuMem host allocations do not appear to be working; falling back to a /dev/shm/ based implementation.",
         "retry"),
        ("Disabling LL128 over all PxN connections (PXB and C2C). This ensures that no C2C link", "thresholds"),
    ],
)  # fmt: skip
def test_lines_of_2_31_and_2_32_are_kept_by_what_they_speak_of(message: str, kind: str) -> None:
    assert row(message, "text") == {"kind": kind, "text": message}


def test_what_a_choice_of_2_31_was_made_from_is_passed_over_and_the_choice_is_read() -> None:
    """src/tuning/tuning.cc: `Input: {` and `Best tuning` stand before the line of the choice itself."""
    assert (
        parse("INFO", "Input: { .comm = 0x56, .tuningMask = 1, .func = AllReduce, .redOp = 0, .nBytes = 1024 }") == []
    )
    assert parse("INFO", "Best tuning { .id = 3, .valid = 1, timeUs = 9.5, .algo = RING, .proto = LL }") == []
    assert parse("INFO", "Best tuning, algorithm, RING, protocol, LL") == []
    (name, columns), *_ = parse("INFO", "AllReduce: 1024 Bytes -> Algo RING proto LL channel{Lo..Hi}={0..1}") or [
        ("", {})
    ]
    assert (name, columns["algo"], columns["proto"]) == ("choice", "RING", "LL")


@pytest.mark.parametrize(
    "message",
    [
        "commReclaim: comm 0x56 (rank = 2) in commDestroySync, error 3",
        "commReclaim: cleanup comm 0x56 rank 2 failed in destroy/abort, error 3",
    ],
)
def test_what_was_a_warning_before_2_31_is_none_as_info(message: str) -> None:
    assert [name for name, _ in parse("WARN", message) or ()] == ["event"]
    assert parse("INFO", message) == []


@pytest.mark.parametrize(
    "message",
    [
        f"comm 0x56 {WHERE} commId 0x9f - Finalize START",
        "comm 0x56 rank 2 nRanks 16 cudaDev 2 busId 4b000 commId 0x9f - Finalize COMPLETE",
        "comm 0x9f rank 2 proxy stop error 3",
        "Init CE, rank 2 baseUCSymReadyPtr 0x7f, baseUCSymComplPtr 0x7f, seq num 1",
        "rank 2 - NET reuse buffer 0x7f size 8 (baseAddr 0x7f size 8) handle 0x7f",
        "Rank 2 ncclRmaProxyConnectOnce: rmaCommCount 1 rmaProxyCtxCount:1",
        "[0] Created a QP: qp_idx=0, qpn=1f, reliable_db=1",
        "Paths from GPU/0-10000 :",
        "Skipping registration for buffer 0x7f size 8 since it contains segments backed by CPU memory",
    ],
)
def test_lines_of_buffers_and_queues_are_passed_over(message: str) -> None:
    assert parse("INFO", message) == []


@pytest.mark.parametrize(
    "message",
    [
        "NCCL progress counter monitor: counter DMA still pending after 6.0s (cudaDev 3, 2 comms); "
        "progress-counter mirrors may be stale",
        "NCCL progress-counter clock calibration failed on cudaDev 3; progress-counter age tracking disabled for this "
        "communicator",
    ],
)
def test_what_the_monitor_of_progress_counters_says_is_of_ras(message: str) -> None:
    assert row(message, "text")["kind"] == "ras"


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        (
            "Socket magic mismatch from 10.0.0.1<33> (peer 0x1 != expected 0x2), discarding peer connection",
            "socket note",
        ),
        (
            "Wrong socket type from 10.0.0.1<33> (peer 3 != expected 4 -- peer connected to wrong NCCL socket), "
            "discarding peer connection",
            "socket note",
        ),
        ("Handshake receive from 10.0.0.1<33> failed, discarding peer connection", "socket note"),
        ("Peer 10.0.0.1<33> closed before socket hello, discarding", "socket note"),
        ("AllGather [Hierarchical CE]: 1048576 Bytes -> Rail RING RMA proxy + CE", "kernel"),
    ],
)
def test_what_2_32_says_in_other_words_is_of_the_kind_it_was(message: str, kind: str) -> None:
    assert row(message, "text")["kind"] == kind
