"""What is kept of files and output that hold more than a check reads."""

import pytest

from tests.tables import examples
from topodiag_probes import reduced


@examples("reader", "text", "kept")
def test_what_a_reader_keeps_of_a_text(reader: str, text: str, kept: str):
    assert getattr(reduced, reader)(text) == kept


@pytest.mark.parametrize("value", ["hunter2", "password:hunter2", "pt,hunter2"])
def test_a_parameters_value_of_another_form_is_replaced_and_it_is_said(value: str):
    assert reduced.kernel_command_line("iommu=" + value) == "iommu=(left-out)"


@examples("said", "name")
def test_of_a_process_the_name_of_its_program_is_kept(said: str, name: str):
    assert reduced.program(said) == name


@examples("line", "kept")
def test_of_a_control_group_the_words_of_runtimes_are_kept(line: str, kept: str):
    assert reduced.cgroup(line) == kept


def test_a_topology_file_keeps_elements_and_attributes():
    text = (
        '<system version="1">\n<!-- by alice,\n password hunter2 -->\n  <cpu numaid="0" arch="x86_64">note of alice\n'
        '    <pci busid="0000:1b:00.0" class="0x030200" link_speed="32.0 GT/s PCIe" note="token=hunter2"/>\n'
        "  </cpu>\n</system>\n"
    )
    kept = reduced.topo_xml(text)
    assert kept.count("\n") == text.count("\n")
    assert "alice" not in kept
    assert "hunter2" not in kept
    assert 'link_speed="32.0 GT/s PCIe" note="(left out)"/>' in kept
