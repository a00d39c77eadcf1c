"""Secrets in any text: what is taken for one, and what is not."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topodiag_probes import secrets
from topodiag_probes.secrets import GONE, without_secrets

MARK = "hunter2"
NODES = Path(__file__).parents[2] / "fixtures" / "nodes"


@pytest.mark.parametrize(
    "text",
    [
        "password=hunter2",
        "PGPASSWORD=hunter2",
        "pass: hunter2",
        "DB_PASSWD='hunter2 and more'",
        '"api_key": "hunter2"',
        "<password>hunter2</password>",
        "secret_key => hunter2",
        "token:hunter2",
        "WANDB_API_KEY=hunter2",
        "train --password hunter2 --lr 1",
        "--hf-token=hunter2",
        "Authorization: Bearer hunter2abcdef",
        "the password is hunter2",
        "http://alice:hunter2@10.0.0.1/x",
        "credentials=hunter2",
        "cookie: hunter2",
    ],
)
def test_what_is_named_a_secret_is_gone(text: str):
    assert MARK not in without_secrets(text)


@pytest.mark.parametrize(
    "secret",
    [
        "AKIA0123456789ABCDEF",
        "ghp_0123456789abcdefghijABCDEFGHIJ012345",
        "glpat-0123456789abcdefghij",
        "xoxb-0123456789-abcdefghij",
        "sk-0123456789abcdefghijABCD",
        "hf_abcdefghijABCDEFGHIJ012345",
        "nvapi-0123456789abcdefghijABCD",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl",
        "$6$saltsalt$0123456789abcdefghijABCDEFGHIJ",
        "wJalrXUtnF3MI/K7MDeNG/bPxRfiCYz8Qe4Tb1xA",
        "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXk\n-----END OPENSSH PRIVATE KEY-----",
    ],
)
def test_a_key_is_known_by_its_form(secret: str):
    shown = without_secrets(f"mlx5_core: note {secret} end")
    assert secret.split("\n", maxsplit=1)[0] not in shown
    assert GONE in shown
    assert shown.startswith("mlx5_core: note ")
    assert shown.endswith(" end")


@pytest.mark.parametrize("folder", sorted(path.name for path in NODES.iterdir()))
def test_in_the_evidence_of_machines_nothing_is_taken_for_a_secret(folder: str):
    for path in sorted((NODES / folder).rglob("*.*")):
        text = path.read_text(encoding="utf-8", errors="replace")
        assert without_secrets(text) == text, path


@pytest.mark.parametrize(
    "text",
    [
        "iommu: Default domain type: Passthrough (set via kernel command line)",
        "usb 1-1: authorized to connect",
        "passthrough=1 author: x",
        "rx_discards_phy: 5",
        "Key type dns_resolver registered",
        "NCCL_IB_PKEY=0x7fff",
        "GPU-8f4a1c02-1111-4222-8333-000000000001",
        "password=<hidden>",
        "auth: none",
    ],
)
def test_what_is_no_secret_stays(text: str):
    assert without_secrets(text) == text


def test_many_suspect_lines_cost_a_bounded_time_and_are_left_out(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(secrets, "SEARCHED", 1000)
    text = "token=hunter2 and more words\n" * 400
    shown = without_secrets(text).split("\n")
    assert shown[0] == f"token={GONE} and more words"
    assert shown[-2] == GONE
    assert len(shown) == 401


@given(st.text(alphabet="passwordtken=:\"' \nAK-_/$.eyJ<>01aB", max_size=120))
def test_any_text_keeps_its_lines_and_is_clean_at_the_second_look(text: str):
    once = without_secrets(text)
    assert once.count("\n") == text.count("\n")
    assert without_secrets(once) == once
