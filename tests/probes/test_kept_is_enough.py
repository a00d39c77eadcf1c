"""What the collector keeps is what readers read: machines that are reduced like a capture are the same machines."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.probes.test_redact import NODES, plain
from tests.tables import examples
from topodiag.evidence.intake.bundle import from_memory
from topodiag.evidence.intake.reader import read_node
from topodiag.model.provenance import Fact
from topodiag_probes import reduced
from topodiag_probes.items.os_state import KEPT
from topodiag_probes.tree import escape_text
from topodiag_probes.variables import kept_value, wanted

CASES = Path(__file__).parents[2] / "fixtures" / "checks"
WHOLE: dict[str, Callable[[str], str]] = {
    "commands/lspci.txt": reduced.lspci,
    "commands/nvidia-smi-q.txt": reduced.smi_xml,
    "files/nccl-topo-file.xml": reduced.topo_xml,
}
IN_TREES: dict[str, Callable[[str], str]] = {
    **KEPT,
    "proc/cpuinfo": reduced.cpuinfo,
    "sys/class/dmi/id/chassis_asset_tag": reduced.asset_tag,
    "etc/nccl.conf": reduced.conf,
    "HOME/.nccl.conf": reduced.conf,
}


def _variable(line: str) -> str:
    name, _, value = line.partition("=")
    return f"{name}={kept_value(name, value)}" if wanted(name) else ""


def as_captured(path: str, text: str) -> str:
    """A file of a bundle with what the collector would have kept of it."""
    if path in WHOLE:
        return WHOLE[path](text)
    if not path.endswith(".tree"):
        return text
    lines: list[str] = []
    waiting: dict[str, list[str]] = {}
    for line in text.split("\n"):
        place, _, content = line[2:].partition("\t")
        if line.startswith("= environ\t"):
            content = _variable(content)
            lines += [f"= environ\t{content}"] if content else []
        elif line.startswith("= ") and place in IN_TREES:
            waiting.setdefault(place, []).append(content)
        else:
            lines.append(line)
    texts = [f"= {place}\t{escape_text(part)}" for place, content in waiting.items()
            for part in IN_TREES[place]("\n".join(content)).split("\n")]  # fmt: skip
    return "\n".join([*texts, *lines])


def _node(manifest: Any, files: dict[str, bytes]) -> dict[str, Any]:
    node = read_node(from_memory("x", manifest, files)).node
    system = replace(node.os, cmdline=Fact())  # other parameters are left out on purpose
    return plain(replace(node, os=system, scheduler={}))


@pytest.mark.parametrize("name", ["gb200-tray", "l40s-pcie-acs-on"])
def test_a_machine_reads_the_same_after_it_was_reduced(name: str):
    folder = NODES / name
    manifest = json.loads((folder / "manifest.json").read_text())
    paths = [item["file"] for item in manifest["items"] if item.get("file") and (folder / item["file"]).is_file()]
    files = {path: (folder / path).read_bytes() for path in paths}
    captured = {path: as_captured(path, data.decode()).encode() for path, data in files.items()}
    assert captured != files
    assert _node(manifest, captured) == _node(manifest, files)


def _settings() -> list[tuple[str, str, str]]:
    """Each line of settings that a case of a check adds: its path, what it says, what is kept of it."""
    rows = []
    for path in sorted(CASES.glob("*/cases.json")):
        for case in json.loads(path.read_text()):
            for edit in case.get("edits", ()):
                for line in f"{edit.get('with', '')}\n{edit.get('append', '')}".split("\n"):
                    place, _, text = line.removeprefix("= ").partition("\t")
                    if place == "environ":
                        rows.append((place, text, _variable(text)))
                    elif place.endswith("nccl.conf"):
                        rows.append((place, text, reduced.conf(text)))
    return rows


def test_every_setting_of_the_checks_own_cases_is_kept_but_for_comments():
    lines = _settings()
    changed = [(text, kept) for _, text, kept in lines if text != kept]
    assert len(lines) > 12
    assert [(text, kept) for text, kept in changed if "(left out)" not in kept] == []


def test_the_parameters_that_checks_read_are_kept_on_the_kernels_command_line():
    for words in ("iommu=pt", "intel_iommu=on", "amd_iommu=on iommu=pt", "iommu.passthrough=1", "amd_iommu=off"):
        assert reduced.kernel_command_line(f"BOOT_IMAGE=/boot/x root=/dev/md0 ro {words}") == f"ro {words}"


# --- what is kept of files and output that hold more than a check reads ---------------------------------------


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
