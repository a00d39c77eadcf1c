"""What `nvidia-smi -q -x` says, in the spellings of its DTDs, whole or cut."""

from typing import Any

import pytest

from tests.evidence.filled import draft_by, text_of
from tests.tables import examples, texts
from topodiag.evidence.draft import Entity, NodeDraft
from topodiag.evidence.interface import Blob, Item
from topodiag.evidence.nvidia.nvidia_smi_xml import NvidiaSmiXml

UUIDS = [f"GPU-11111111-2222-3333-4444-55555555555{n}" for n in range(4)]


def gpu(number: int, reasons: str, more: str = "") -> str:
    return f"""\t<gpu id="00000000:{0x1B + number:02X}:00.0">
		<product_name>NVIDIA H100 80GB HBM3</product_name>
		<persistence_mode>Enabled</persistence_mode>
		<mig_mode><current_mig>Disabled</current_mig><pending_mig>Disabled</pending_mig></mig_mode>
		<uuid>{UUIDS[number]}</uuid>
		<minor_number>{number}</minor_number>
		<board_part_number>692-2G520-0200-000</board_part_number>
		<pci>
			<pci_gpu_link_info>
				<pcie_gen>
					<max_link_gen>4</max_link_gen>
					<current_link_gen>1</current_link_gen>
					<max_device_link_gen>5</max_device_link_gen>
				</pcie_gen>
				<link_widths>
					<max_link_width>16x</max_link_width>
					<current_link_width>8x</current_link_width>
				</link_widths>
			</pci_gpu_link_info>
			<replay_counter>7</replay_counter>
		</pci>
		<performance_state>P2</performance_state>
		{reasons}
		<compute_mode>Exclusive_Process</compute_mode>
		<utilization><gpu_util>45 %</gpu_util><memory_util>12 %</memory_util></utilization>
		<fb_memory_usage><total>81559 MiB</total><used>4096 MiB</used></fb_memory_usage>
		<gpu_power_readings><power_draw>N/A</power_draw><instant_power_draw>91.20 W</instant_power_draw>
			<current_power_limit>700.00 W</current_power_limit></gpu_power_readings>
		{more}
	</gpu>
"""


def reasons(word: str) -> str:
    block, tag = f"clocks_{word}_reasons", f"clocks_{word}_reason"
    return (
        f"<{block}><{tag}_gpu_idle>Not Active</{tag}_gpu_idle>"
        f"<{tag}_hw_thermal_slowdown>Active</{tag}_hw_thermal_slowdown></{block}>"
    )


def report(*gpus: str, version: int = 12, attached: int | None = None) -> str:
    return (
        f'<?xml version="1.0" ?>\n<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v{version}.dtd">\n<nvidia_smi_log>\n'
        "\t<driver_version>570.86.15</driver_version>\n\t<cuda_version>12.8</cuda_version>\n"
        f"\t<attached_gpus>{len(gpus) if attached is None else attached}</attached_gpus>\n"
        + "".join(gpus)
        + "</nvidia_smi_log>\n"
    )


V11 = report(gpu(0, reasons("throttle")), gpu(1, reasons("throttle")), version=11)
V12 = text_of("nvidia-smi-xml", "V12")


def fill(text: str, argv: str = "") -> NodeDraft:
    item = Item("nvidia-smi-q", "nvidia-smi-xml", "q.xml", argv=tuple(argv.split())) if argv else None
    return draft_by(NvidiaSmiXml(), Blob("q.xml", text.encode(), item))


def value(entity: Entity, name: str) -> Any:
    return next((offer.value for offer in entity.offers.get(name, ()) if offer.value is not None), None)


def counts(entity: Entity) -> dict[str, Any]:
    return {name: offers[0].value for name, offers in entity.counters.items()}


@pytest.mark.parametrize("text", [V11, V12], ids=["v11", "v12"])
def test_both_generations_of_the_dtd_give_the_same_gpu(text: str) -> None:
    entity = fill(text).gpu(index=1)
    assert entity.keys == {"index": 1, "bus_id": "0000:1c:00.0", "uuid": UUIDS[1]}
    wanted = {
        "name": "NVIDIA H100 80GB HBM3",
        "minor": 1,
        "mig": False,
        "persistence": True,
        "compute_mode": "Exclusive_Process",
        "utilization": 45,
        "memory_utilization": 12,
        "memory_used_mib": 4096,
        "power_w": 91.2,
        "power_limit_w": 700.0,
        "pstate": 2,
        "throttle": ("hw_thermal_slowdown",),
        "board": "692-2G520-0200-000",
    }
    assert {name: value(entity, name) for name in wanted} == wanted


def test_a_value_carries_its_line_and_element() -> None:
    origin = fill(V12).gpu(index=1).offers["uuid"][0].origin
    assert V12.splitlines()[origin.line - 1].strip() == origin.text == f"<uuid>{UUIDS[1]}</uuid>"


@pytest.mark.parametrize("word", ["N/A", "[N/A]", "[Not Supported]", "Unknown Error", "ERR!", "", "x" * 500])
def test_no_reading_is_unknown_with_why(word: str) -> None:
    text = V12.replace("45 %", word).replace("<replay_counter>7", f"<replay_counter>{word}")
    draft = fill(text)
    assert value(draft.gpu(index=0), "utilization") is None
    assert draft.gpu(index=0).offers["utilization"][0].why
    assert counts(draft.pci("0000:1b:00.0")) == {}
    assert value(draft.gpu(index=0), "pstate") == 2


@pytest.mark.parametrize("words", ["GPU is lost", "[GPU requires reset]"])
def test_a_gpu_that_does_not_answer_is_lost(words: str) -> None:
    draft = fill(V12.replace("45 %", words, 1))
    assert value(draft.gpu(index=0), "lost") == words.strip("[]")
    assert value(draft.gpu(index=1), "lost") is None


@examples("element", "action")
def test_the_recovery_action_has_one_spelling(element: str, action: str | None) -> None:
    assert value(fill(report(gpu(0, "", element))).gpu(index=0), "recovery_action") == action


TEXTS = texts(__file__)
FABRIC = TEXTS["fabric"]


def fabric(text: str) -> dict[str, Any]:
    child = fill(report(gpu(0, "", text))).gpu(index=0).child("fabric", 0)
    return {name: value(child, name) for name in child.offers}


def test_the_fabric_is_given_in_the_models_words() -> None:
    assert fabric(FABRIC) == {
        "state": "completed",
        "status": "success",
        "clique_id": 3,
        "cluster_uuid": "12345678-0000-0000-0000-000000000000",
        "health": "limited",
        "bandwidth": "degraded",
        "problems": "route unhealthy",
    }


def test_a_fabric_without_health_has_no_problems_known() -> None:
    older = FABRIC[: FABRIC.index("<health>")] + "<health><bandwidth>N/A</bandwidth></health></fabric>"
    assert fabric(older)["bandwidth"] is None
    assert "problems" not in fabric(older)


def test_a_healthy_fabric_has_an_empty_list_of_problems() -> None:
    assert fabric(FABRIC.replace("True", "False"))["problems"] == ""


def test_memory_errors_are_summed_over_their_parts() -> None:
    more = """<ecc_errors><volatile><sram_correctable>1</sram_correctable>
      <sram_uncorrectable_parity>2</sram_uncorrectable_parity><sram_uncorrectable_secded>3</sram_uncorrectable_secded>
      <dram_correctable>10</dram_correctable><dram_uncorrectable>20</dram_uncorrectable></volatile>
      <aggregate><sram_correctable>N/A</sram_correctable><dram_correctable>4</dram_correctable></aggregate></ecc_errors>
      <remapped_rows><remapped_row_corr>1</remapped_row_corr><remapped_row_unc>0</remapped_row_unc>
      <remapped_row_pending>Yes</remapped_row_pending><remapped_row_failure>No</remapped_row_failure></remapped_rows>"""
    assert counts(fill(report(gpu(0, "", more))).gpu(index=0)) == {
        "ecc_volatile_corrected": 11,
        "ecc_volatile_uncorrected": 25,
        "remapped_correctable": 1,
        "remapped_uncorrectable": 0,
        "remapped_pending": 1,
        "remapped_failure": 0,
    }


def test_a_cut_report_keeps_the_gpus_before_the_cut() -> None:
    cut = V12[: V12.index("<uuid>" + UUIDS[1])]
    draft = fill(cut)
    assert value(draft.gpu(index=0), "compute_mode") == "Exclusive_Process"
    assert value(draft.gpu(index=1), "name") == "NVIDIA H100 80GB HBM3"
    assert value(draft.gpu(index=1), "compute_mode") is None
    assert NvidiaSmiXml().parse(Blob("x", cut.encode())).unread_count >= 1


def test_entities_stay_text_and_are_never_expanded() -> None:
    bomb = '<!DOCTYPE nvidia_smi_log [<!ENTITY a "aaaaaaaaaa"><!ENTITY b SYSTEM "file:///etc/passwd">]>'
    text = V12.replace('<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v12.dtd">', bomb)
    draft = fill(text.replace("NVIDIA H100 80GB HBM3", "&a;&b;", 1))
    assert value(draft.gpu(index=0), "name") == "&a;&b;"
    assert value(draft.gpu(index=0), "pstate") == 2


def test_endless_nesting_is_refused() -> None:
    deep = "<a>" * 100_000
    draft = fill(report(gpu(0, "", deep), gpu(1, "")))
    assert value(draft.gpu(index=0), "name") == "NVIDIA H100 80GB HBM3"
    assert value(draft.gpu(index=1), "pstate") == 2


@pytest.mark.parametrize(("text", "argv"), [(V12, "nvidia-smi -q -x -i 4,5"), (report(gpu(2, ""), attached=8), "")])
def test_a_report_of_some_gpus_gives_no_numbers(text: str, argv: str) -> None:
    assert all("index" not in entity.keys for entity in fill(text, argv).entities("gpu"))


@pytest.mark.parametrize("text", ["", "<system></system>", "nvidia_smi_log", '{"a": 1}'])
def test_other_texts_are_not_recognised(text: str) -> None:
    assert not NvidiaSmiXml().recognises(text)
    assert NvidiaSmiXml().recognises(V11)
