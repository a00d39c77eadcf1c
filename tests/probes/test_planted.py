"""A hundred marked secrets and identities, in every place that the collector reads: which of them leave the node.

A secret is to be gone with and without `--redact`, an identity with it. Each mark is a word of its own, or a value in
the form of what it stands for. `pytest -s` prints the marks that were found, by place.
"""

from __future__ import annotations

import json
import re
import sys

import pytest

from topodiag_probes import capture as capturing
from topodiag_probes.bundle import Bundle
from topodiag_probes.capture import capture
from topodiag_probes.items.processes import describe
from topodiag_probes.redact import Redactor
from topodiag_probes.secrets import without_secrets
from topodiag_probes.tree import Root

SECRETS = {
    "environment": {
        "OMPI_ARGV": "--password MARK",
        "TORCH_NCCL_X": "password=MARK",
        "TORCH_NCCL_TRACE_BUFFER_SIZE": "MARK",
        "NCCL_ALGO": "MARK",
        "NCCL_NET": "tcp://user:MARK@10.0.0.1:5",
        "NCCL_IB_DISABLE": "token=MARK",
        "NCCL_OF_A_PLUGIN": "say MARK",
        "NCCL_DEBUG_FILE": "/tmp/log?key=MARK",
        "NCCL_HOSTID": "secret=MARK",
        "SLURM_JWT": "MARK",
        "SLURM_JOB_COMMENT": "password MARK",
        "NVIDIA_API_KEY": "MARK",
        "NVIDIA_VISIBLE_DEVICES": "all password=MARK",
        "CUDA_VISIBLE_DEVICES": "MARK",
        "UCX_TLS": "rc MARK",
        "FI_PROVIDER": "efa;auth_key=MARK",
        "OMPI_MCA_orte_precondition_transports": "MARK-MARK",
        "PMIX_SECURITY_MODE": "munge MARK",
        "RAY_ADDRESS": "ray://user:MARK@10.9.8.7:10001",
        "LD_PRELOAD": "/lib/x.so?token=MARK",
        "KUBERNETES_SERVICE_HOST": "user:MARK@10.9.8.7/x",
        "WANDB_API_KEY": "MARK",
    },
    "etc/nccl.conf": "# password MARK\nNCCL_DEBUG=INFO # token MARK\nNCCL_ALGO=MARK\nAWS_SECRET_ACCESS_KEY=MARK\n"
    "MARK\n",
    "home/x/.nccl.conf": "NCCL_X=Bearer MARK\n  # key MARK\n",
    "home/x/topo.xml": '<system version="1"><!-- token MARK -->note MARK\n<cpu numaid="0" key="MARK=?"/>\n</system>\n',
    "proc/cmdline": "ro luks.key=MARK rd.iscsi.password=MARK ks=http://u:MARK@h/ iommu=MARK console=MARK\n",
    "proc/version": "Linux version 5.15.0 (token=MARK) #1\n",
    "proc/modules": "nvidia 16384 0 - Live 0x0 MARK\n",
    "etc/os-release": 'NAME="Ubuntu"\nSUPPORT_URL="https://u:MARK@h/"\nTOKEN="MARK"\n',
    "proc/1/cgroup": "0::/system.slice/token=MARK.scope\n",
    "proc/1/environ": "container=podman token=MARK\0PASSWORD=MARK\0",
    "proc/driver/nvidia/params": 'RegistryDwords: "password=MARK"\n',
    "var/log/fabricmanager.log": "[ERROR] login failed, password=MARK\n[INFO] note MARK\n",
    "var/log/nvidia-imex.log": "error: Authorization: Bearer MARKMARK\nplain MARK\n",
    "etc/nvidia-imex/nodes_config.cfg": "# password MARK\n10.0.0.7 # MARK\n",
    "sys/class/infiniband/mlx5_0/node_desc": "card secret=MARK\n",
    "nvidia-smi": "<process_name>/usr/bin/python3 train.py --token MARK</process_name>\n"
    "<process_name>ray::run(password=MARK)</process_name>\n",
    "lspci": "0000:18:00.0 Ethernet controller: X\n\tCapabilities: [48] Vital Product Data\n"
    "\t\t\t[V1] Vendor specific: MARK\n\t\t\t[YA] Asset tag: MARK\n",
    "dmesg": "[ 1.0] NVRM: api_key=MARK\n[ 1.1] mlx5_core: passwd: MARK\n[ 1.2] nvidia: --auth-token MARK\n",
    "journalctl": "[ 1.0] gpu-001 kernel: NVRM: https://u:MARK@h/x\n",
    "ibstat": "CA 'mlx5_0' token=MARK\n",
    "ibv_devinfo": "hca_id: mlx5_0\n\tpassword: MARK\n",
    "rdma": "link mlx5_0/1 secret=MARK\n",
    "ethtool": "Settings for eth0:\n\tpassword: MARK\n",
    "systemctl": "Id=nvidia-imex.service\nResult=token=MARK\n",
    "ibdev2netdev": "mlx5_0 cookie=MARK\n",
    "amd-smi": "GPU0 password: MARK\n",
    "rocm-smi": "GPU[0] : token=MARK\n",
    "sys/class/kfd/kfd/topology/nodes/1/properties": "simd_count 4\nunique_id MARK\n",
    "process": "ray::password=MARK",
}
"""Text by place; each MARK becomes a word of its own."""

IDENTITIES = {
    "environment": {
        "SLURM_JOB_USER": "MARK",
        "SLURM_JOB_NAME": "MARK",
        "SLURM_JOB_ACCOUNT": "MARK",
        "SLURM_CLUSTER_NAME": "MARK",
        "SLURM_SUBMIT_DIR": "/home/MARK/run",
        "SLURM_CONF_SERVER": "MARK:6817",
        "SLURM_JOB_NODELIST": "MARK[01-02],MARK7",
        "SLURM_TOPOLOGY_ADDR": "MARK.MARK.MARK",
        "MASTER_ADDR": "MARK.site.example",
        "HOSTNAME": "MARK",
        "POD_NAME": "MARK-0",
        "POD_NAMESPACE": "MARK",
        "NODE_NAME": "MARK.local",
        "LD_LIBRARY_PATH": "/home/MARK/lib:/data/MARK/lib64",
        "NCCL_TUNER_CONFIG_FILE": "/home/MARK/t.conf",
        "NCCL_NET_PLUGIN": "MARK",
    },
    "etc/nccl.conf": "# ask MARK@MARK.example\nNCCL_TOPO_DUMP_FILE=/home/MARK/t.xml\n",
    "home/x/topo.xml": '<system version="1" host="MARK"/>\n',
    "proc/version": "Linux version 5.15.0-MARK (MARK@MARK) #1\n",
    "proc/modules": "MARK 16384 0 - Live 0x0\n",
    "etc/os-release": 'NAME="MARK"\nHOME_URL="https://MARK.example/"\n',
    "proc/1/cgroup": "0::/user.slice/user-MARK.slice/MARK.scope\n",
    "proc/driver/nvidia/version": "NVRM version: NVIDIA  570.86.15  (MARK@MARK)\n",
    "proc/driver/nvidia/params": 'TemporaryFilePath: "/home/MARK"\n',
    "sys/class/dmi/id/chassis_asset_tag": "MARK\n",
    "sys/class/dmi/id/product_name": "MARK\n",
    "sys/class/infiniband/mlx5_0/node_desc": "MARK mlx5_0\n",
    "var/log/fabricmanager.log": "[ERROR] peer MARK.MARK.example lost, serial MARK\n",
    "etc/nvidia-imex/nodes_config.cfg": "MARK.example\n",
    "var/run/secrets/kubernetes.io/serviceaccount/namespace": "MARK\n",
    "proc/net/bonding/MARK": "Slave Interface: MARK\n",
    "nvidia-smi": "<serial>MARK</serial><process_name>/home/MARK/MARK</process_name><note>MARK</note>\n",
    "lspci": "0000:18:00.0 Ethernet controller: X\n\tSubsystem: MARK MARK\n\tDeviceName: MARK\n",
    "dmesg": "[ 1.0] NVRM: host MARK.MARK.example user=MARK\n[ 1.1] mlx5_core: serial MARK mail MARK@MARK.example\n",
    "journalctl": "[ 1.0] MARK kernel: NVRM: job MARK in /home/MARK/x by MARK\n",
    "ibstat": "CA 'MARK'\n",
    "ibv_devinfo": "hca_id: mlx5_0\n\tboard_id: MARK\n",
    "rdma": "link mlx5_0/1 netdev MARK\n",
    "systemctl": "Id=MARK.service\n",
    "other process": "MARK",
}
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
    found = _found(bundle, machine.secrets.place)
    sys.stdout.write(f"secrets found: {len(found)} of {len(machine.secrets.place)} {found}\n")
    assert found == {}


def test_with_redaction_every_secret_and_every_identity_is_gone(bundles: tuple[_Machine, Bundle, Bundle]):
    machine, _, redacted = bundles
    planted = {**machine.secrets.place, **machine.identities.place, **dict.fromkeys(VALUES, "by their form")}
    found = _found(redacted, planted)
    sys.stdout.write(f"marks found: {len(found)} of {len(planted)} {found}\n")
    assert found == {}


def test_the_marks_of_what_is_kept_were_there_to_be_replaced(bundles: tuple[_Machine, Bundle, Bundle]):
    machine, bundle, _ = bundles
    found = _found(bundle, {**machine.identities.place, **dict.fromkeys(VALUES, "by their form")})
    assert set(VALUES) <= found.keys()
    assert len(found) > 40
    assert {"dmesg", "ibstat", "etc/nccl.conf", "other process", "environment MASTER_ADDR"} <= set(found.values())


def test_every_item_says_which_fields_are_kept(bundles: tuple[_Machine, Bundle, Bundle]):
    _, bundle, _ = bundles
    assert [item["id"] for item in bundle.manifest["items"] if not item["keeps"]] == []
