from __future__ import annotations

import pytest

from topodiag.words.dialect import AMD, NVIDIA


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("no NVLink error counter was read", "no xGMI error counter was read"),
        ("2 of 8 NVLinks of an NVLink pair", "2 of 8 xGMI links of an xGMI link pair"),
        ("look with `nvidia-smi topo -m`", "look with `amd-smi topology`"),
        ("NCCL 2.21.5 with NCCL_DEBUG=INFO", "RCCL 2.21.5 with NCCL_DEBUG=INFO"),
        ("a line `NCCL WARN`", "a line `NCCL WARN`"),
        ("dmesg | grep -i xid", "dmesg | grep -i amdgpu"),
    ],
)
def test_amd_has_words_of_its_own(text: str, said: str) -> None:
    assert AMD.say(text) == said
    assert NVIDIA.say(text) == text


def test_a_phrase_is_not_spoken_twice() -> None:
    assert AMD.say("nvidia-smi") == "amd-smi"
    assert AMD.say(AMD.say("nvidia-smi nvlink -s")) == "amd-smi xgmi"


def test_steps_without_a_counterpart_are_left_out() -> None:
    steps = ("systemctl status nvidia-fabricmanager", "nvidia-smi nvlink -s -i N", "nvidia-smi nvlink -s", "reboot")
    assert AMD.steps(steps) == ("amd-smi xgmi", "reboot")
    assert NVIDIA.steps(steps) == steps
