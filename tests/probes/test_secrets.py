"""Secrets in any text: what is taken for one, and what is not."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tables import examples
from topodiag_probes import secrets
from topodiag_probes.secrets import GONE, without_secrets

MARK = "hunter2"
NODES = Path(__file__).parents[2] / "fixtures" / "nodes"


@examples("text")
def test_what_is_named_a_secret_is_gone(text: str):
    assert MARK not in without_secrets(text)
    assert MARK not in without_secrets(f"gpu-07 10.0.0.1\n{text}\n/etc/passwd")


@examples("secret")
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


@examples("text")
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
