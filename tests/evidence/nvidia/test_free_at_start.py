"""JOB004 by what a program finds free of a GPU before it has any memory itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pasted import first_of, loud

DEVICE = "I tensorflow/core/common_runtime/gpu/gpu_device.cc:885] Found device {} with properties:\n"
OLD = DEVICE + "name: Tesla K40c\npciBusID 0000:02:00.0\nTotal memory: 11.17GiB\nFree memory: {}\n"
NEW = DEVICE + "name: GeForce GTX 1080 Ti\npciBusID: 0000:02:00.0\ntotalMemory: 10.92GiB freeMemory: {}\n"
OLLAMA = 'level=INFO source=types.go:60 msg="inference compute" id=GPU-1 library=cuda total="79.1 GiB" available="{}"\n'
CREATED = "I gpu_device.cc:1115] Created TensorFlow device (/job:localhost/device:GPU:0 with 10412 MB memory)\n"


@pytest.mark.parametrize(
    "text", [OLD.format(1, "227.88MiB"), NEW.format(0, "198.00MiB"), OLLAMA.format("312.0 MiB"),
             OLD.format(0, "11.05GiB") + OLD.format(1, "105.88MiB")],
)  # fmt: skip
def test_a_gpu_that_is_full_before_the_program_begins_is_anothers(text: str, tmp_path: Path) -> None:
    assert first_of(tmp_path, text)["id"] == "JOB004"


@pytest.mark.parametrize(
    "text",
    [
        OLD.format(0, "11.05GiB"),
        NEW.format(0, "9.87GiB"),  # a desktop has the rest
        NEW.format(0, "10.75GiB") + NEW.format(0, "198.00MiB"),  # the program's own second session
        CREATED + NEW.format(0, "198.00MiB"),
        OLLAMA.format("78.4 GiB"),
        "Free memory: 105.88MiB\n",  # of what, nothing says
        "Total memory: 251GiB\n" + "step\n" * 9 + "Free memory: 2GiB\n",
    ],
)
def test_memory_that_is_free_or_the_programs_own_is_no_fault(text: str, tmp_path: Path) -> None:
    assert not loud(tmp_path, text)
