"""A hundred marked secrets and identities, in every place that the collector reads: which of them leave the node.

A secret is to be gone with and without `--redact`, an identity with it. Each mark is a word of its own, or a value in
the form of what it stands for. `pytest -s` prints the marks that were found, by place.
"""

import json
import re
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.probes.test_redact import NODES, plain
from tests.tables import examples, texts
from topodiag.evidence.intake.bundle import from_memory
from topodiag.evidence.intake.reader import read_node
from topodiag.model.provenance import Fact
from topodiag_probes import capture as capturing
from topodiag_probes import reduced
from topodiag_probes.bundle import Bundle
from topodiag_probes.capture import capture
from topodiag_probes.items.os_state import KEPT
from topodiag_probes.items.processes import describe
from topodiag_probes.redact import Redactor
from topodiag_probes.secrets import without_secrets
from topodiag_probes.tree import Root, escape_text
from topodiag_probes.variables import kept_value, wanted

TEXTS = texts(__file__)
SECRETS = TEXTS["secrets"]
"""Text by place; each MARK becomes a word of its own."""

IDENTITIES = TEXTS["identities"]
VALUES = (
    "a0:88:c2:77:13:59", "a088c2771359", "a088:c203:0077:1359", "0xa088c20300771359", "10.97.13.59",
    "fd97:1359:7::a288:c277", "GPU-97135997-1359-4222-8333-000000971359",
    "a088c2771360", "ip-10-97-13-59", "1650559713597",
)  # fmt: skip
"""Identities by their form, each in the kernel log and the output of ibstat."""

_COMMANDS = ("nvidia-smi", "lspci", "dmesg", "journalctl", "ibstat", "ibv_devinfo", "rdma", "ethtool", "systemctl",
             "ibdev2netdev", "amd-smi", "rocm-smi")  # fmt: skip


class _Marks:
    """Puts a word of its own wherever MARK stands, and knows where each of them went."""

    def __init__(self, start: str) -> None:
        self.start = start
        self.place: dict[str, str] = {}

    def plant(self, place: str, text: str) -> str:
        def mark(_found: re.Match[str]) -> str:
            word = f"{self.start}{len(self.place):03d}q"
            self.place[word] = place
            return word

        return re.sub("MARK", mark, text)


class _FakeRoot(Root):
    """A folder that counts as the live machine: files come from it, commands are those of the stubs."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.live = True


class _Machine:
    def __init__(self) -> None:
        self.secrets, self.identities = _Marks("zsec"), _Marks("zide")
        self.files: dict[str, str] = {}
        self.environ: dict[str, str] = {}
        for marks, planted in ((self.secrets, SECRETS), (self.identities, IDENTITIES)):
            for place, text in planted.items():
                if isinstance(text, dict):
                    for name, value in text.items():
                        key = name if name not in self.environ else name + "_2"
                        self.environ[key] = marks.plant(f"{place} {name}", value)
                    continue
                where = marks.plant(place, place) if "MARK" in place else place
                self.files[where] = self.files.get(where, "") + marks.plant(place, text)
        for number, value in enumerate(VALUES):
            named = "serial" if value.isdigit() else "at"
            self.files["dmesg"] += f"[ 2.{number}] mlx5_core: {named} {value} up\n"
            self.files["ibstat"] += f"\tguid: {value}\n"


@pytest.fixture(scope="module")
def bundles(tmp_path_factory: pytest.TempPathFactory) -> tuple[_Machine, Bundle, Bundle]:
    """The machine with its marks, its bundle, and its redacted bundle."""
    folder = tmp_path_factory.mktemp("planted")
    machine = _Machine()
    root, stubs = folder / "root", folder / "stubs"
    stubs.mkdir()
    for place, text in machine.files.items():
        if place in _COMMANDS:
            (folder / place).write_text(text, encoding="utf-8")
            (stubs / place).write_text(f"#!/bin/sh\ncat {folder / place}\ncat {folder / place} >&2\nexit 1\n")
            (stubs / place).chmod(0o755)
        elif not place.endswith("process"):
            path = root / place
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    for path, text in {
        "proc/self/status": "Name:\tpython3\n",
        "proc/sys/kernel/hostname": "gpu-001",
        "sys/class/net/eth0/device/vendor": "0x15b3",
        "sys/class/net/eth0/address": VALUES[0],
        "proc/4711/status": f"Name:\t{machine.files['process']}\nCpus_allowed_list:\t0-3\n",
        "proc/4711/environ": "\0".join(f"{name}={value}" for name, value in machine.environ.items()),
        "proc/4712/status": f"Name:\t{machine.files['other process']}\nCpus_allowed_list:\t0-3\n",
        "proc/4712/environ": "",
    }.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        for name, value in machine.environ.items():
            patch.setenv(name, value)
        patch.setenv("HOME", "/home/x")
        patch.setenv("NCCL_TOPO_FILE", "/home/x/topo.xml")
        patch.setattr(capturing, "Root", _FakeRoot)
        patch.setattr("topodiag_probes.items.processes.importlib", None)  # the environment is read from the folder
        bundle = capture(root=str(root), extra_path=str(stubs), deadline_s=60.0)
        process = json.dumps({"processes": [describe(_FakeRoot(str(root)), pid, [0]) for pid in (4711, 4712)]})
    bundle.files["json/processes.json"] = without_secrets(process).encode()
    return machine, bundle, Redactor(b"a key of the site").bundle(bundle)


def _found(bundle: Bundle, marks: dict[str, str]) -> dict[str, str]:
    whole = (
        b"\n".join(name.encode() + b"\n" + data for name, data in bundle.members()).decode("utf-8", "replace").lower()
    )
    return {mark: place for mark, place in marks.items() if mark.lower() in whole}


def test_more_than_a_hundred_marks_are_planted_in_every_item(bundles: tuple[_Machine, Bundle, Bundle]):
    machine, bundle, _ = bundles
    assert len(machine.secrets.place) >= 60
    assert len(machine.identities.place) + len(VALUES) >= 60
    missing = {item["id"] for item in bundle.manifest["items"] if item["status"] in ("absent", "denied", "skipped")}
    assert missing <= {"nvml", "processes", "sys-pci", "sys-cpu", "topologyd-file", "imex-config"}, missing


def test_without_redaction_every_secret_is_gone(bundles: tuple[_Machine, Bundle, Bundle]):
    machine, bundle, _ = bundles
    table = _found(bundle, machine.secrets.place)
    sys.stdout.write(f"secrets found: {len(table)} of {len(machine.secrets.place)} {table}\n")
    assert table == {}


def test_with_redaction_every_secret_and_every_identity_is_gone(bundles: tuple[_Machine, Bundle, Bundle]):
    machine, _, redacted = bundles
    planted = {**machine.secrets.place, **machine.identities.place, **dict.fromkeys(VALUES, "by their form")}
    table = _found(redacted, planted)
    sys.stdout.write(f"marks found: {len(table)} of {len(planted)} {table}\n")
    assert table == {}


def test_the_marks_of_what_is_kept_were_there_to_be_replaced(bundles: tuple[_Machine, Bundle, Bundle]):
    machine, bundle, _ = bundles
    table = _found(bundle, {**machine.identities.place, **dict.fromkeys(VALUES, "by their form")})
    assert set(VALUES) <= table.keys()
    assert len(table) > 40
    assert {"dmesg", "ibstat", "etc/nccl.conf", "other process", "environment MASTER_ADDR"} <= set(table.values())


def test_every_item_says_which_fields_are_kept(bundles: tuple[_Machine, Bundle, Bundle]):
    _, bundle, _ = bundles
    assert [item["id"] for item in bundle.manifest["items"] if not item["keeps"]] == []


# --- What the collector keeps is what readers read: machines that are reduced like a capture are the same machines


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
