"""What NVML's answers say, as the collector wrote them: each call on its own."""

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.evidence.filled import draft_by
from topodiag.evidence.draft import Entity, NodeDraft
from topodiag.evidence.interface import Blob
from topodiag.evidence.nvidia.nvidia_words import event_reasons
from topodiag.evidence.nvidia.nvml import Nvml

UUIDS = ["GPU-11111111-2222-3333-4444-555555555555", "GPU-11111111-2222-3333-4444-666666666666"]


def gpu(index: int, **more: Any) -> dict[str, Any]:
    answer: dict[str, Any] = {
        "index": index,
        "name": "NVIDIA H100 80GB HBM3",
        "uuid": UUIDS[index],
        "minor": index,
        "board_part_number": "692-2G520-0200-000",
        "pci": {"bus_id": f"00000000:{0x1B + index:02X}:00.0", "device_id": 590352606},
        "pcie_gen": 5,
        "pcie_width": 8,
        "pcie_max_gen": 4,
        "pcie_max_width": 16,
        "pcie_gpu_max_gen": 5,
        "pcie_replay": 3,
        "numa_node": {"error": "NotSupported"},
        "cpu_affinity": ["0x3", "0x1"],
        "compute_capability": [9, 0],
        "compute_mode": 3,
        "persistence": 1,
        "mig_mode": [0, 0],
        "utilization": {"gpu": 97, "memory": 3},
        "pstate": 0,
        "power_mw": 131_250,
        "power_limit_mw": 700_000,
        "event_reasons": 0x41,
        "recovery_action": 0,
        "c2c": {"count": 0},
        "fabric": {
            "version": 3,
            "state": 3,
            "status": 0,
            "clique_id": 2,
            "cluster_uuid": "00000000-0000-0000-0000-000000000000",
            "health_mask": 0x1AA,
            "health_summary": 1,
        },
        "ecc": {"volatile_corrected": 1, "volatile_uncorrected": 0, "aggregate_corrected": {"error": "NotSupported"}},
        "remapped_rows": [1, 2, 0, 1],
        "nvlinks": [
            {
                "link": 0,
                "state": 1,
                "version": 6,
                "speed_mbps": 26562,
                "remote_type": 2,
                "remote_bus_id": "FFFFFFFF:FF:FF.0",
                "capability": {"0": 1, "5": 1},
                "errors": {"replay": 4, "recovery": 0, "crc_flit": 5, "crc_data": {"error": "NotSupported"}},
                "fields": {"206": 6, "220": 4095, "214": 7},
            },
            {"link": 1, "state": 0, "version": {"error": "NotSupported"}},
        ],
    }
    return {**answer, **more}


def document(*gpus: dict[str, Any], **more: Any) -> dict[str, Any]:
    head = {"driver_version": "570.86.15", "nvml_version": "12.570", "cuda_driver_version": 12080, "device_count": 2}
    return {**head, "gpus": list(gpus) or [gpu(0), gpu(1)], **more}


def fill(given: Any) -> NodeDraft:
    data = given if isinstance(given, bytes) else json.dumps(given).encode()
    return draft_by(Nvml(), Blob("json/nvml.json", data))


def value(entity: Entity, name: str) -> Any:
    return next((offer.value for offer in entity.offers.get(name, ()) if offer.value is not None), None)


def why(entity: Entity, name: str) -> str:
    return entity.offers[name][0].why


def counts(entity: Entity) -> dict[str, Any]:
    return {name: offers[0].value for name, offers in entity.counters.items()}


def test_a_gpu_is_offered_whole() -> None:
    entity = fill(document()).gpu(index=1)
    assert entity.keys == {"index": 1, "bus_id": "0000:1c:00.0", "uuid": UUIDS[1]}
    wanted = {
        "name": "NVIDIA H100 80GB HBM3",
        "sm": 90,
        "minor": 1,
        "cpu_affinity": "0-1,64",
        "compute_mode": "Exclusive_Process",
        "persistence": True,
        "mig": False,
        "utilization": 97,
        "memory_utilization": 3,
        "power_w": 131.25,
        "power_limit_w": 700.0,
        "pstate": 0,
        "throttle": ("gpu_idle", "hw_thermal_slowdown"),
        "recovery_action": "none",
        "c2c": False,
        "board": "692-2G520-0200-000",
    }
    assert {name: value(entity, name) for name in wanted} == wanted


def test_an_answer_is_quoted_with_its_place() -> None:
    origin = fill(document()).gpu(index=1).offers["pstate"][0].origin
    assert (origin.source, origin.text) == ("json/nvml.json", "gpus[1].pstate: 0")


def test_pcie_facts_belong_to_the_function() -> None:
    pci = fill(document()).pci("0000:1b:00.0")
    names = ("gen", "width", "slot_max_gen", "max_gen", "max_width")
    assert [value(pci, name) for name in names] == [5, 8, 4, 5, 16]
    assert counts(pci) == {"replay": 3}


def test_a_link_is_offered_in_the_models_words() -> None:
    draft = fill(document())
    link, down = (draft.gpu(index=0).child("nvlink", number) for number in (0, 1))
    wanted = {
        "state": "active",
        "version": "4.0",
        "line_gbs": 26.562,
        "remote_type": "switch",
        "remote_bus_id": "ffffffff:ff:ff.f",
    }
    assert {name: value(link, name) for name in wanted} == wanted
    assert counts(link) == {
        "replay": 4,
        "recovery": 0,
        "crc_flit": 5,
        "malformed_packet": 6,
        "link_recovery_failed": 7,
    }
    assert value(down, "state") == "inactive"
    assert why(down, "version") == "NotSupported"


def test_the_field_tells_sleep_from_active() -> None:
    links = [{"link": 0, "state": 1, "fields": {"165": 2}}]
    assert value(fill(document(gpu(0, nvlinks=links))).gpu(index=0).child("nvlink", 0), "state") == "sleep"


def test_numbers_past_the_last_link_make_no_link() -> None:
    links = [{"link": 0, "state": 1}, {"link": 12, "state": {"error": "InvalidArgument"}}]
    assert list(fill(document(gpu(0, nvlinks=links))).gpu(index=0).children) == [("fabric", 0), ("nvlink", 0)]


def test_a_fabric_is_offered_in_the_models_words() -> None:
    child = fill(document()).gpu(index=0).child("fabric", 0)
    assert {name: value(child, name) for name in child.offers} == {
        "state": "completed",
        "status": "success",
        "clique_id": 2,
        "cluster_uuid": "00000000-0000-0000-0000-000000000000",
        "health": "healthy",
        "bandwidth": "full",
        "problems": "",
    }


def test_a_registration_under_way_has_no_status_yet() -> None:
    going = gpu(0, fabric={"state": 2, "status": 0, "health_mask": 0, "health_summary": 0})
    child = fill(document(going)).gpu(index=0).child("fabric", 0)
    assert {name: value(child, name) for name in child.offers} == {"state": "in_progress"}
    failed = gpu(0, fabric={"state": 3, "status": 27})
    assert value(fill(document(failed)).gpu(index=0).child("fabric", 0), "status") == "NotReady"


def test_event_reasons_without_a_name_keep_their_number() -> None:
    assert event_reasons(0x204) == ("sw_power_cap", "reason_0x200")
    assert event_reasons(0) == ()


def test_memory_counters_keep_only_what_was_read() -> None:
    assert counts(fill(document()).gpu(index=0)) == {
        "ecc_volatile_corrected": 1,
        "ecc_volatile_uncorrected": 0,
        "remapped_correctable": 1,
        "remapped_uncorrectable": 2,
        "remapped_pending": 0,
        "remapped_failure": 1,
    }


def test_pairs_are_offered_both_ways() -> None:
    pairs = [{"a": 0, "b": 1, "ancestor": 50, "p2p": {"read": 0, "nvlink": 5, "write": {"error": "NotSupported"}}}]
    offered = {
        (pair.table, pair.a.keys["index"], pair.b.keys["index"]): pair.offer.value
        for pair in fill(document(pairs=pairs)).pairs
    }
    assert offered == {
        ("pcie", 0, 1): "SYS",
        ("pcie", 1, 0): "SYS",
        ("p2p:read", 0, 1): "OK",
        ("p2p:read", 1, 0): "OK",
        ("p2p:nvlink", 0, 1): "NS",
        ("p2p:nvlink", 1, 0): "NS",
    }


def test_a_failed_call_is_unknown_with_the_errors_name() -> None:
    draft = fill(document(gpu(0, pstate={"error": "NotSupported"}, utilization={"error": "NoPermission"})))
    assert why(draft.gpu(index=0), "pstate") == "NotSupported"
    assert why(draft.gpu(index=0), "utilization") == "NoPermission"


@pytest.mark.parametrize("bad", ["text", 10**30, -5, 1e300, [], {}, True, [[1]], {"error": 3}])
def test_a_wrong_type_costs_only_that_value(bad: Any) -> None:
    usual = fill(document()).gpu(index=0)
    for key in ("minor", "pstate", "compute_capability", "cpu_affinity", "event_reasons", "mig_mode", "remapped_rows"):
        entity = fill(document(gpu(0, **{key: bad}))).gpu(index=0)
        assert value(entity, "compute_mode") == "Exclusive_Process"
        assert len(entity.children) == len(usual.children)


@pytest.mark.parametrize(("error", "words"), [("GpuIsLost", "GPU is lost"), ("ResetRequired", "GPU requires reset")])
def test_a_lost_gpu_is_lost_wherever_nvml_says_so(error: str, words: str) -> None:
    assert value(fill(document({"index": 0, "error": error})).gpu(index=0), "lost") == words
    assert value(fill(document(gpu(0, pcie_gen={"error": error}))).gpu(index=0), "lost") == words
    assert value(fill(document()).gpu(index=0), "lost") is None


def test_a_library_that_did_not_come_up_is_the_nodes_fact() -> None:
    draft = fill({"error": "LibRmVersionMismatch"})
    assert value(draft.single("os"), "nvml_error") == "LibRmVersionMismatch"
    assert not list(draft.entities("gpu"))


def test_versions_are_the_nodes() -> None:
    os = fill(document()).single("os")
    assert (value(os, "driver_version"), value(os, "cuda_version")) == ("570.86.15", "12.8")


def test_a_superchips_link_to_its_cpu_is_summed() -> None:
    c2c = {"count": 2, "links": [{"link": n, "status": 1, "max_bw_mbps": 44712} for n in range(2)]}
    draft = fill(document(gpu(0, c2c=c2c, numa_node=10)))
    assert value(draft.gpu(index=0), "c2c_gbs") == pytest.approx(89.424)
    assert value(draft.gpu(index=0), "memory_numa") == 10


def test_gpus_without_an_index_of_their_own_are_left() -> None:
    parsed = Nvml().parse(Blob("x", json.dumps(document(gpu(0), gpu(0), {"name": "x"})).encode()))
    assert parsed.unread_count == 2
    assert len(list(fill(document(gpu(0), gpu(0))).entities("gpu"))) == 1


@pytest.mark.parametrize("data", [b"", b"[]", b"{", b"[" * 100_000, b'{"gpus": ' + b"9" * 10_000 + b"}", b"null"])
def test_what_is_no_document_is_left_with_why(data: bytes) -> None:
    fill(data)
    assert Nvml().parse(Blob("x", data)).unread_count <= 1


@pytest.mark.parametrize("text", ["", "{}", '{"processes": []}', '{"gpus": 3}', "<xml/>", '["nvlinks"]'])
def test_other_texts_are_not_recognised(text: str) -> None:
    assert not Nvml().recognises(text)
    assert Nvml().recognises(json.dumps(document()))
    assert Nvml().recognises('{"error": "LibraryNotFound"}\n')


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*gpu(0), "error", "0"]), inner),
    max_leaves=12,
)


@given(st.data())
def test_any_value_anywhere_is_survived(data: st.DataObject) -> None:
    whole = copy.deepcopy(document(pairs=[{"a": 0, "b": 1, "ancestor": 10, "p2p": {"read": 0}}]))
    place: Any = whole
    while True:
        key = data.draw(st.sampled_from(sorted(place))) if isinstance(place, dict) else 0
        if not isinstance(place[key], dict | list) or not place[key] or data.draw(st.booleans()):
            break
        place = place[key]
    place[key] = data.draw(JSON)
    fill(whole)
