"""NVML and the processes on the GPUs, asked in a child that may hang, against a binding that plays eight H100s."""

import importlib.util
import json
import os
import sys
import time
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from topodiag.evidence import registry
from topodiag.evidence.intake.bundle import from_memory
from topodiag_probes.capture import capture
from topodiag_probes.items import nvml, processes
from topodiag_probes.library import LibraryProbe
from topodiag_probes.tree import Root

FAKES = Path(__file__).parent / "fakes"


@pytest.fixture
def binding(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Puts the fake binding, with given faults, where `import pynvml` finds it."""

    def load(faults: str = "") -> ModuleType:
        monkeypatch.setenv("FAKE_NVML", faults)
        spec = importlib.util.spec_from_file_location("pynvml", FAKES / "pynvml.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        monkeypatch.setitem(sys.modules, "pynvml", module)
        return module

    return load


@pytest.fixture
def child(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Captures with the fake binding in the child process."""

    def run(faults: str = "", only: tuple[str, ...] = ("nvml",), **options: Any) -> Any:
        monkeypatch.setenv("FAKE_NVML", faults)
        monkeypatch.setenv("PYTHONPATH", str(FAKES))
        monkeypatch.syspath_prepend(str(FAKES))
        return capture(only=list(only), **options)

    return run


def _read(*arguments: str) -> dict[str, Any]:
    lines: list[bytes] = []
    nvml.read(lambda key, value: lines.append(json.dumps([key, value]).encode()), list(arguments))
    return nvml.Nvml().assemble(b"\n".join(lines))


def test_eight_healthy_gpus(binding):
    binding()
    document = _read()
    assert document["driver_version"] == "570.86.15"
    assert document["device_count"] == len(document["gpus"]) == 8
    gpu = document["gpus"][1]
    assert gpu["pci"] == {"bus_id": "00000000:2B:00.0", "device_id": 590352606, "subsystem_id": 381948126}
    assert gpu["compute_capability"] == [9, 0]
    assert gpu["numa_node"] == {"error": "NotSupported"}
    assert gpu["utilization"] == {"gpu": 7, "memory": 2}
    assert (gpu["power_mw"], gpu["power_limit_mw"]) == (131_250, 700_000)
    assert gpu["cpu_affinity"][0] == "0xffffffffffffff"
    assert gpu["c2c"] == {"count": 0}
    assert gpu["recovery_action"] == 0
    assert gpu["fabric"] == {
        "version": 3,
        "state": 3,
        "status": 0,
        "clique_id": 5,
        "cluster_uuid": "00010203-0405-0607-0809-0a0b0c0d0e0f",
        "health_mask": 0x1AA,
        "health_summary": 1,
    }
    assert gpu["processes"] == [{"pid": os.getpid(), "used_memory": 1 << 30}]


def test_links_end_where_nvml_says_invalid_argument(binding):
    binding()
    links = _read()["gpus"][0]["nvlinks"]
    assert [link["link"] for link in links] == list(range(18))
    assert links[4] == {
        "link": 4,
        "state": 1,
        "version": 6,
        "speed_mbps": 26562,
        "remote_type": 2,
        "remote_bus_id": "FFFFFFFF:FF:FF.0",
        "capability": {"0": 1, "5": 1},
        "errors": {"replay": 4, "recovery": 4, "crc_flit": 4, "crc_data": {"error": "NotSupported"}},
        "fields": {},
    }


def test_each_pair_once(binding):
    binding()
    pairs = _read()["pairs"]
    assert len(pairs) == 28
    assert pairs[0] == {
        "a": 0,
        "b": 1,
        "ancestor": 50,
        "p2p": {"read": 0, "write": 0, "nvlink": 0, "atomics": 0, "prop": 5},
    }


def test_a_gpu_off_the_bus_says_so_and_the_others_speak(binding):
    binding("lost=5")
    document = _read()
    lost = document["gpus"][5]
    assert lost["name"] == lost["pci"] == lost["fabric"] == {"error": "GpuIsLost"}
    assert lost["nvlinks"] == [{"link": 0, "state": {"error": "GpuIsLost"}}]
    assert document["gpus"][6]["name"] == "NVIDIA H100 80GB HBM3"
    assert next(pair["ancestor"] for pair in document["pairs"] if pair["b"] == 5) == {"error": "GpuIsLost"}


def test_an_old_binding_lacks_functions_and_speaks_in_bytes(binding):
    binding("old")
    gpu = _read()["gpus"][0]
    assert gpu["name"] == "NVIDIA H100 80GB HBM3"
    assert gpu["addressing_mode"] == {"error": "FunctionNotFound"}
    assert gpu["event_reasons"] == 1
    assert gpu["fabric"]["version"] == 2
    assert "health_summary" not in gpu["fabric"]


def test_the_second_sample_holds_counters_alone(binding):
    binding()
    gpu = _read("counters")["gpus"][0]
    assert set(gpu) == {"index", "pci", "pcie_replay", "ecc", "nvlinks"}
    assert set(gpu["nvlinks"][0]) == {"link", "errors", "fields"}


def test_the_real_binding_without_a_driver_is_an_error_by_name(monkeypatch: pytest.MonkeyPatch):
    real = pytest.importorskip("pynvml")
    monkeypatch.setattr(
        real, "nvmlInit", lambda: (_ for _ in ()).throw(real.NVMLError(real.NVML_ERROR_DRIVER_NOT_LOADED))
    )
    assert _read() == {"error": "DriverNotLoaded"}


def test_what_the_real_binding_names_is_what_is_called():
    real = pytest.importorskip("pynvml")
    for _key, function in nvml._PLAIN:
        assert hasattr(real, function), function
    shown = [getattr(real, name) for name in ("NVML_FI_DEV_C2C_LINK_COUNT", "NVML_FI_DEV_NVLINK_GET_SPEED")]
    assert shown == [170, 164]
    assert nvml.FIELDS_NVLINK5[-1] == real.NVML_FI_DEV_NVLINK_COUNT_SYMBOL_BER
    assert real.NVML_FI_DEV_GET_GPU_RECOVERY_ACTION == nvml.FIELD_RECOVERY_ACTION


def test_the_child_answers_although_the_library_prints(child):
    bundle = child()
    assert bundle.manifest["items"][-1]["id"]
    document = json.loads(bundle.files["json/nvml.json"])
    assert len(document["gpus"]) == 8
    (blob,) = from_memory("live", bundle.manifest, bundle.files).blobs
    source = registry.source("nvml")
    assert source.parse(blob).unread == []


def test_a_call_that_never_returns_costs_what_comes_after_it(child):
    begun = time.monotonic()
    bundle = child("hang=6", deadline_s=4.0)
    assert time.monotonic() - begun < 8.0
    (item,) = [item for item in bundle.manifest["items"] if item["id"] == "nvml"]
    assert item["status"] == "timeout"
    document = json.loads(bundle.files["json/nvml.json"])
    assert [gpu["index"] for gpu in document["gpus"]] == [0, 1, 2, 3, 4, 5]
    assert document["device_count"] == 8


def test_a_library_that_does_not_come_up_is_told_by_name(child):
    bundle = child("noinit=LibraryNotFound")
    (item,) = [item for item in bundle.manifest["items"] if item["id"] == "nvml"]
    assert (item["status"], item["why"]) == ("absent", "LibraryNotFound")
    assert json.loads(bundle.files["json/nvml.json"]) == {"error": "LibraryNotFound"}


def test_a_host_without_the_binding_says_so(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(nvml, "importable", lambda name: False)
    bundle = capture(only=["nvml"])
    if Path("/dev/nvidiactl").exists():
        pytest.skip("this host has a GPU, so the child is asked all the same")
    assert json.loads(bundle.files["json/nvml.json"]) == {"error": "pynvml not importable"}


def test_the_line_that_a_killed_worker_was_writing_is_left_out():
    document = LibraryProbe().assemble(b'["top", {"a": 1}]\n["gpus", {"index": 0}]\n["gpus", {"ind')
    assert document == {"a": 1, "gpus": [{"index": 0}]}


def test_a_process_is_described_with_its_filtered_environment(binding, monkeypatch: pytest.MonkeyPatch):
    binding()
    records: list[dict[str, Any]] = []
    processes.read(lambda key, value: records.append(value), [])
    (own,) = records
    assert (own["pid"], own["gpus"], own["error"]) == (os.getpid(), [0, 1], "")
    assert own["cpus_allowed"]


def test_the_environment_of_another_process_is_filtered(machine: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "psutil", None)
    folder = machine / "proc/4711"
    folder.mkdir(parents=True)
    (folder / "status").write_text("Name:\tpython3\nCpus_allowed_list:\t0-55\nMems_allowed_list:\t0-1\n")
    (folder / "environ").write_bytes(b"NCCL_DEBUG=INFO\0HOME=/home/a\0SLURM_JWT=secret\0WANDB_API_KEY=secret\0")
    assert processes.describe(Root(str(machine)), 4711, [0]) == {
        "pid": 4711,
        "name": "python3",
        "gpus": [0],
        "cpus_allowed": "0-55",
        "mems_allowed": "0-1",
        "nccl_env": {"NCCL_DEBUG": "INFO"},
        "error": "",
    }


def test_a_process_that_is_gone_is_told(machine: Path):
    assert processes.describe(Root(str(machine)), 4712, [0])["error"].startswith("gone")
