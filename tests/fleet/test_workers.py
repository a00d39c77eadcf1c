"""How workers start: forked from a process that is alone in its memory, spawned from any other."""

import os
import subprocess
import sys

import pytest

from topodiag.fleet.cores import one_thread

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere workers are always spawned")


def way(before: str) -> str:
    """How a new process that did this would start its workers."""
    code = f"{before}\nfrom topodiag.fleet.workers import way_to_start\nprint(way_to_start().get_start_method())"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


@LINUX
def test_a_process_of_one_thread_is_forked() -> None:
    assert way("") == "fork"


@LINUX
def test_what_reading_loads_leaves_one_thread() -> None:
    start = "from topodiag.fleet.cores import one_thread\none_thread()"
    loaded = f"{start}\nimport topodiag.fleet.ingest, zstandard"
    assert way(loaded) == "fork"


def test_a_process_with_another_thread_is_not() -> None:
    assert way("import threading\nthreading.Thread(target=threading.Event().wait, daemon=True).start()") == "spawn"


def test_elsewhere_it_is_not() -> None:
    assert way("import sys\nsys.platform = 'darwin'") == "spawn"


def test_whoever_sets_the_threads_of_numpy_keeps_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "7")
    one_thread()
    assert os.environ["OPENBLAS_NUM_THREADS"] == "7"
