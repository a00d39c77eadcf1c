"""A service of the fabric that refuses its options is told; its usage alone is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pasted import loud

UNKNOWN = "Unknown option: /usr/share/nvidia/nvswitch/fabricmanager.cfg\n"
SCRIPT = "NVIDIA Fabric Manager Start Script\nWarning: If you are not a developer, avoid running this directly.\n"
USAGE = "Usage: /usr/bin/nvidia-fabricmanager-start.sh [script options] --args [arguments]\n  -h, --help   Show this\n"
IMEX = "nvidia-imex: unrecognized option '--cfg'\nUsage: nvidia-imex [options]\n"


@pytest.mark.parametrize("text", ["Starting NVIDIA fabric manager daemon...\n" + UNKNOWN + SCRIPT + USAGE, IMEX])
def test_a_start_that_ends_with_the_usage_is_told(tmp_path: Path, text: str) -> None:
    assert loud(tmp_path, text) == ["NVL005"]


@pytest.mark.parametrize(
    "text",
    [
        "$ nvidia-fabricmanager-start.sh --help\n" + SCRIPT + USAGE,
        "train.py: error: Unknown option: --cfg\nUsage: train.py [options]\n",
        UNKNOWN + "line\n" * 20 + USAGE,
    ],
)
def test_a_usage_that_was_asked_for_is_not(tmp_path: Path, text: str) -> None:
    assert "NVL005" not in loud(tmp_path, text)
