"""Which variables are kept: those that bear on communication, and never a secret."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from topodiag.evidence.interface import Blob, Parsed
from topodiag.evidence.tree import read_tree
from topodiag_probes.capture import capture
from topodiag_probes.items.settings import filtered, wanted


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
    ],
)
def test_secrets_and_what_is_none_of_our_business_are_not(name: str):
    assert not wanted(name)


def test_a_login_in_an_address_is_taken_out():
    assert filtered({"NCCL_NET": "tcp://user:word@10.0.0.1:5"}) == {"NCCL_NET": "tcp://10.0.0.1:5"}


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
    assert "NCCL_NOTE=two\nlines" in [line for _, line in tree.files["environ"].lines]
    assert b"alice" not in data


def test_that_nothing_is_set_is_a_fact(monkeypatch: pytest.MonkeyPatch):
    for name in filtered(dict(os.environ)):
        monkeypatch.delenv(name)
    bundle = capture(only=["settings"])
    (item,) = [item for item in bundle.manifest["items"] if item["id"] == "settings"]
    assert item["status"] == "ok"
