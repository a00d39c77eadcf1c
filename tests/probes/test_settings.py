"""Which variables are kept: those that bear on communication, and never a secret."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from topodiag.evidence.host.settings import Settings
from topodiag.evidence.interface import Blob, Parsed
from topodiag.evidence.tree import read_tree
from topodiag_probes.capture import capture
from topodiag_probes.variables import kept, wanted


@pytest.mark.parametrize(
    "name",
    [
        "NCCL_DEBUG",
        "NCCL_IB_PKEY",
        "CUDA_VISIBLE_DEVICES",
        "NVIDIA_VISIBLE_DEVICES",
        "UCX_TLS",
        "FI_PROVIDER",
        "OMPI_COMM_WORLD_RANK",
        "PMI_RANK",
        "SLURM_JOB_ID",
        "KUBERNETES_SERVICE_HOST",
        "RANK",
        "LOCAL_RANK",
        "WORLD_SIZE",
        "MASTER_ADDR",
        "LD_LIBRARY_PATH",
    ],
)
def test_settings_of_communication_are_kept(name: str):
    assert wanted(name)


@pytest.mark.parametrize(
    "name",
    [
        "HOME",
        "AWS_SECRET_ACCESS_KEY",
        "SLURM_JWT",
        "SLURM_AUTH_TOKEN",
        "NVIDIA_API_KEY",
        "UCX_PASSWORD",
        "OMPI_MCA_orte_precondition_transports",
        "PMIX_SECRET_PKEY",
        "CRANK",
        "WANDB_API_KEY",
        "OMPI_ARGV",
        "OMPI_MCA_ess_base_jobid",
        "SLURM_CONF_SERVER",
        "SLURM_JOB_NAME",
        "SLURM_JOB_ACCOUNT",
        "SLURM_JOB_USER",
        "SLURM_CLUSTER_NAME",
        "SLURM_SUBMIT_DIR",
        "SLURM_JOB_COMMENT",
        "RAY_ADDRESS",
    ],
)
def test_secrets_and_what_is_none_of_our_business_are_not(name: str):
    assert not wanted(name)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("NCCL_ALGO", "allreduce:tree,ring;broadcast:ring"),
        ("NCCL_ALGO", "Rnig"),
        ("NCCL_PROTO", "^LL128"),
        ("NCCL_DEBUG_SUBSYS", "INIT,NET,^COLL"),
        ("NCCL_CHECK_MODE", "DEBUG_LOCAL"),
        ("NCCL_IB_HCA", "=mlx5_0:1,mlx5_1:1"),
        ("NCCL_IB_HCAS", "mlx5_0"),
        ("NCCL_SOCKET_IFNAME", "^lo,docker0"),
        ("NCCL_SOCKET_FAMILY", "AF_INET6"),
        ("NCCL_NET", "AWS Libfabric"),
        ("NCCL_NET_PLUGIN", "libnccl-net-ofi.so"),
        ("NCCL_BUFFSIZE", "4M"),
        ("NCCL_IB_HCA", "rocep1s0f0,roceP2p1s0f0"),
        ("NCCL_DEBUG_FILE", "/tmp/log#1.%h"),
        ("NCCL_DEBUG_TIMESTAMP_FORMAT", "[%F %T] "),
        ("LD_LIBRARY_PATH", "/opt/nccl-ofi/lib:$LD_LIBRARY_PATH"),
        ("NCCL_IB_PKEY", "0x7fff"),
        ("NCCL_P2P_LEVEL", "NVL"),
        ("NCCL_DEBUG_FILE", "/tmp/nccl.%h.%p"),
        ("NCCL_COMM_ID", "10.0.0.1:29500"),
        ("NCCL_IB_ADDR_RANGE", "10.0.0.0/8"),
        ("NCCL_SHM_DISABLE", "true"),
        ("CUDA_VISIBLE_DEVICES", "0,1,2,3"),
        ("CUDA_VISIBLE_DEVICES", "GPU-8f4a1c02-1111-4222-8333-000000000001"),
        ("CUDA_DEVICE_ORDER", "PCI_BUS_ID"),
        ("SLURM_TASKS_PER_NODE", "8(x2)"),
        ("SLURM_JOB_NODELIST", "gpu[001-064],login9z"),
        ("SLURM_TOPOLOGY_ADDR", "spine1.leaf[1-2].gpu001"),
        ("SLURM_TOPOLOGY_ADDR_PATTERN", "switch.switch.node"),
        ("SLURM_CPU_BIND", "quiet,mask_cpu:0xff,0xff00"),
        ("SLURM_DISTRIBUTION", "block:cyclic,Pack"),
        ("LD_LIBRARY_PATH", "/usr/local/cuda/lib64:/opt/nccl/lib:"),
        ("MASTER_ADDR", "fe80::1"),
        ("UCX_TLS", "rc,cuda_copy,self"),
        ("FI_PROVIDER", "efa"),
    ],
)
def test_a_value_of_its_variables_form_is_kept_as_it_is(name: str, value: str):
    assert kept({name: value}) == {name: value}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("NCCL_NET", "tcp://user:word@10.0.0.1:5"),
        ("NCCL_ALGO", "hunter2"),
        ("NCCL_IB_DISABLE", "password=hunter2"),
        ("TORCH_NCCL_X", "password=hunter2"),
        ("NCCL_IB_HCA", "AKIA0123456789ABCDEF"),
        ("NCCL_NOTE", "two\nlines"),
        ("NCCL_DEBUG_FILE", "/tmp/log?token=hunter2"),
        ("NCCL_HOSTID", "one two=three"),
        ("CUDA_VISIBLE_DEVICES", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl"),
    ],
)
def test_a_value_of_another_form_is_replaced_and_it_is_said(name: str, value: str):
    (shown,) = kept({name: value}).values()
    assert shown.startswith("<replaced: not ")


def test_a_device_of_this_node_may_have_any_name():
    assert kept({"NCCL_SOCKET_IFNAME": "hunter2"}, ["hunter2"]) == {"NCCL_SOCKET_IFNAME": "hunter2"}


def test_a_value_that_was_not_kept_is_no_setting_and_counts_as_unread():
    text = b"d environ\t\n= environ\tNCCL_ALGO=<replaced: not known words>\n= environ\tNCCL_DEBUG=WARN\n"
    parsed = Settings().parse(Blob("settings.tree", text))
    assert [record.name for record in parsed.records] == ["", "NCCL_DEBUG"]
    assert parsed.unread_count == 1


def test_the_files_that_nccl_reads_are_there_and_the_users_name_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    home = tmp_path / "alice"
    home.mkdir()
    (home / ".nccl.conf").write_text("NCCL_DEBUG=WARN\n")
    (tmp_path / "site.conf").write_text("NCCL_ALGO=Ring\n")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("NCCL_CONF_FILE", str(tmp_path / "site.conf"))
    monkeypatch.setenv("NCCL_NOTE", "two\nlines")
    data = capture(only=["settings"]).files["trees/settings.tree"]
    tree = read_tree(Blob("settings", data), Parsed())
    assert tree.text("HOME/.nccl.conf") == "NCCL_DEBUG=WARN"
    assert tree.text(str(tmp_path / "site.conf").lstrip("/")) == "NCCL_ALGO=Ring"
    assert any(line.startswith("NCCL_NOTE=<replaced: ") for _, line in tree.files["environ"].lines)
    assert b"alice" not in data


def test_that_nothing_is_set_is_a_fact(monkeypatch: pytest.MonkeyPatch):
    for name in kept(dict(os.environ)):
        monkeypatch.delenv(name)
    bundle = capture(only=["settings"])
    (item,) = [item for item in bundle.manifest["items"] if item["id"] == "settings"]
    assert item["status"] == "ok"
