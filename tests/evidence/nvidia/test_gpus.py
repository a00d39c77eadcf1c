"""GPUs by DCGM's fields, by NVML and by the XML of nvidia-smi."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.evidence.filled import draft_by, node_of, read, recognises, text_of, value
from topodiag.checks.gpu.lost import GpuLost
from topodiag.evidence.draft import NodeDraft
from topodiag.evidence.intake.same_node import host_of_text
from topodiag.evidence.interface import Blob
from topodiag.evidence.nvidia.nvidia_words import event_reasons
from topodiag.evidence.nvidia.nvml import Nvml
from topodiag.model.finding import Status
from topodiag.model.node import Node

TEXT = (Path(__file__).parents[2] / "fuzz" / "texts" / "dcgm-exporter").read_text("utf-8")
UUID = "GPU-0000000{}-c086-568a-9f1a-c1e1c934c44c"


def scrape(host: str = "n1", gpus: int = 8, **fields: dict[int, float | str]) -> str:
    """One scrape: by field, what each GPU shows beside a busy, healthy one."""
    usual: dict[str, float] = {"SM_CLOCK": 1980, "GPU_UTIL": 100, "XID_ERRORS": 0, "ROW_REMAP_FAILURE": 0}
    lines = []
    for name in dict.fromkeys((*usual, *fields)):
        for gpu in range(gpus):
            value = fields.get(name, {}).get(gpu, usual.get(name, 0))
            labels = f'gpu="{gpu}",UUID="{UUID.format(gpu)}",pci_bus_id="00000000:{gpu + 1}0:00.0",Hostname="{host}"'
            lines.append(f'DCGM_FI_DEV_{name}{{{labels},modelName="NVIDIA H100 80GB HBM3"}} {value}')
    return "\n".join(lines) + "\n"


def test_the_text_names_its_host() -> None:
    assert host_of_text(Blob("m", TEXT.encode())) == "n1"


@pytest.mark.parametrize("name", ["nvidia-dcgm-exporter-x7zkq", "0f3a9be2c811"])
def test_the_name_of_a_container_is_no_host(name: str) -> None:
    assert host_of_text(Blob("m", scrape(name).encode())) == ""


@pytest.mark.parametrize("text", [TEXT, scrape(), "   " + scrape(gpus=1)])
def test_a_scrape_is_recognised(text: str) -> None:
    assert recognises("dcgm-exporter", text)


@pytest.mark.parametrize("blank", ["9223372036854775794", "2147483632", "2.147483632e+09", "140737488355328"])
def test_what_a_gpu_does_not_have_is_no_count(blank: str) -> None:
    node = node_of(scrape(ECC_DBE_VOL_TOTAL=dict.fromkeys(range(8), blank)))
    assert all("ecc_volatile_uncorrected" not in gpu.counters for gpu in node.gpus)


def test_lines_of_some_gpus_do_not_make_the_others_lost() -> None:
    assert GpuLost().judge(node_of(scrape(gpus=3))).status is Status.CLEAN


def test_of_several_scrapes_the_last_counts() -> None:
    node = node_of(scrape(SM_CLOCK={2: 345}) + scrape())
    assert node.gpus[2].sm_clock_mhz.value == 1980


def test_parts_of_a_gpu_and_switches_are_left_aside() -> None:
    part = scrape(gpus=1).replace('Hostname="n1"', 'Hostname="n1",GPU_I_PROFILE="1g.10gb",GPU_I_ID="7"')
    assert not read("dcgm-exporter", part)[1].records


def test_totals_of_links_are_said_not_to_name_them() -> None:
    node = node_of(TEXT)
    assert any("NVLinks" in gap.what for gap in node.not_observed)
    assert not any("NVLinks" in gap.what for gap in node_of(scrape()).not_observed)


def test_metrics_of_several_hosts_are_no_one_node() -> None:
    _, parsed = read("dcgm-exporter", scrape("n1") + scrape("n2"))
    assert not parsed.records
    assert "2 hosts" in parsed.unread[0].why


def test_two_texts_of_one_machine_are_one_node() -> None:
    node: Node = node_of(TEXT, f"GPU 0: NVIDIA H100 80GB HBM3 (UUID: {UUID.format(0)})\n")
    assert len(node.gpus) == 2


# --- what NVML's answers say, as the collector wrote them: no answer costs another one


GPU: dict[str, Any] = json.loads(text_of("nvml", "GPU0"))


def fill(given: Any) -> NodeDraft:
    data = given if isinstance(given, bytes) else json.dumps(given).encode()
    return draft_by(Nvml(), Blob("json/nvml.json", data))


def test_event_reasons_without_a_name_keep_their_number() -> None:
    assert event_reasons(0x204) == ("sw_power_cap", "reason_0x200")
    assert event_reasons(0) == ()


@pytest.mark.parametrize("bad", ["text", 10**30, -5, 1e300, [], {}, True, [[1]], {"error": 3}])
def test_a_wrong_type_costs_only_that_value(bad: Any) -> None:
    usual = fill({"gpus": [GPU]}).gpu(index=0)
    for key in ("minor", "pstate", "compute_capability", "cpu_affinity", "event_reasons", "mig_mode", "remapped_rows"):
        entity = fill({"gpus": [GPU | {key: bad}]}).gpu(index=0)
        assert value(entity, "compute_mode") == "Exclusive_Process"
        assert len(entity.children) == len(usual.children)


@pytest.mark.parametrize("data", [b"", b"[]", b"{", b"[" * 100_000, b'{"gpus": ' + b"9" * 10_000 + b"}", b"null"])
def test_what_is_no_document_is_left_with_why(data: bytes) -> None:
    fill(data)
    assert Nvml().parse(Blob("x", data)).unread_count <= 1


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*GPU, "error", "0"]), inner),
    max_leaves=12,
)


@given(st.data())
def test_any_value_anywhere_is_survived(data: st.DataObject) -> None:
    pairs = [{"a": 0, "b": 1, "ancestor": 10, "p2p": {"read": 0}}]
    whole: dict[str, Any] = json.loads(text_of("nvml", "DOCUMENT")) | {"pairs": pairs}
    place: Any = whole
    while True:
        key = data.draw(st.sampled_from(sorted(place))) if isinstance(place, dict) else 0
        if not isinstance(place[key], dict | list) or not place[key] or data.draw(st.booleans()):
            break
        place = place[key]
    place[key] = data.draw(JSON)
    fill(whole)


# --- What is left of a report of `nvidia-smi -q -x` that is cut, or nested without an end; its readings are in a table
#


V12 = text_of("nvidia-smi-xml", "V12")


def test_a_cut_report_keeps_the_gpus_before_the_cut() -> None:
    draft, parsed = read("nvidia-smi-xml", V12[: V12.index("<uuid>GPU-11111111-2222-3333-4444-555555555551")])
    assert value(draft.gpu(index=0), "compute_mode") == "Exclusive_Process"
    assert value(draft.gpu(index=1), "name") == "NVIDIA H100 80GB HBM3"
    assert value(draft.gpu(index=1), "compute_mode") is None
    assert parsed.unread_count >= 1


def test_endless_nesting_is_refused() -> None:
    draft, _ = read("nvidia-smi-xml", V12.replace("</gpu>", "<a>" * 100_000 + "</gpu>", 1))
    assert value(draft.gpu(index=0), "name") == "NVIDIA H100 80GB HBM3"
    assert value(draft.gpu(index=1), "pstate") == 2
