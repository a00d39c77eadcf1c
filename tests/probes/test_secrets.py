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
        r"{\"hf_token\": \"hunter2\"}",
        "wandb_key: hunter2",
        "client-key-data: hunter2",
        "https://alice:p@hunter2@git.example.net/x",
        "https://alice:a/hunter2@git.example.net/x",
        "https://alice:a'hunter2@git.example.net/x",
        "https://alice:a<hunter2>@git.example.net/x",
        "https://store.example.net/c?sv=2022&sig=hunter2%2Bx%3D&se=1",
        "sshpass -p hunter2 ssh node1",
        "docker login -u alice -p hunter2 registry.example.net",
        "mysql -u root -phunter2 jobs",
        "curl -u alice:hunter2 https://example.net/x",
        "curl -s --user alice:hunter2 https://example.net/x",
        "echo hunter2 | sudo -S ls",
        "-----BEGIN PGP PRIVATE KEY BLOCK-----\nhunter2\n-----END PGP PRIVATE KEY BLOCK-----",
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
        "xapp-1-A02ABCDEFGH-0123456789012-0123456789abcdef",
        "glrt-0123456789abcdefghij",
        "sk_live_0123456789abcdefghij",
        "whsec_0123456789abcdefghij",
        "gsk_0123456789abcdefghij",
        "dapi0123456789abcdef0123456789abcdef",
        "wandb_v1_0123456789abcdefghij",
        "AGE-SECRET-KEY-1QQPZRY9X8GF2TVDW0S3JN54KHCE6MUA7LQQPZRY9X8GF2TVDW0",
        "github_pat_11ABCDEFG0abcdefghijkl_0123456789abcdefghij",
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
        "tcp://10.0.0.1:29500 of alice@node1",
        "http://[fd00::7]:8080/x@y",
        "wandb: Syncing run summer-42 at commit 0123456789abcdef",
        "docker run -p 8080:80 image",
        "curl -s http://10.0.0.1:9400/metrics",
        "mysql-shell 8.0.35 -port",
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


def test_of_a_key_that_a_login_of_wandb_names_nothing_stays():
    """Forty digits alone are the name of a commit as well."""
    key = "0123456789abcdef" * 2 + "01234567"
    assert without_secrets(f"commit {key}") == f"commit {key}"
    assert without_secrets(f"wandb login {key}") == f"wandb login {GONE}"
    assert key not in without_secrets(f"wandb: Appending key for api.wandb.ai to your netrc file: {key}")
