"""For the whole suite: how many examples a property has, answers kept for longer, modules compiled once."""

import contextlib
import gc
import os
import signal
import sys
from importlib import import_module
from typing import Any

import pytest
from _pytest.runner import runtestprotocol
from hypothesis import settings

from tests.depth import EXAMPLES

settings.register_profile("suite", deadline=None, max_examples=EXAMPLES)
settings.load_profile("suite")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell that is not interactive starts its background jobs so, and every child would inherit it.
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Python's own searches for garbage go through what tests keep again and again, and free next to nothing.
gc.disable()
_OBJECTS = 500_000
"""New objects between two searches, which are between tests. What a search finds in use is kept to the end: the next
looks only at what is newer."""

# Two workers, and hundreds of programs that tests start, would compile the same modules again.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

_LONGEST = (
    *(
        "cli/test_sessions.py",
        "fleet/test_slurm.py",
        "fuzz/test_fuzz.py",
        "test_judged_right.py",
        "test_cases_replay.py",
    ),
    *(
        "app/test_diagnose.py",
        "cli/test_topo.py",
        "report/html/test_browser.py",
        "test_contributing.py",
        "test_fixtures_replay.py",
    ),
    *("evidence/nccl_log/tables/test_saved.py", "evidence/nccl_log/fast/test_scan.py", "fleet/collect/test_slurm.py"),
    *("nccl/search/test_search.py", "expect/test_as_built.py", "expect/test_published.py", "fleet/test_ingest.py"),
    *("nccl/test_corpus_jobs.py", "test_incident_properties.py", "cli/test_scan.py", "test_corpus_incidents.py"),
    *("evidence/nccl_xml/test_source.py", "app/test_bench.py", "test_less_evidence.py"),
    *("probes/test_command.py", "evidence/intake/test_fixtures.py"),
    *("evidence/nccl_log/test_corpus_jobs.py", "checks/topo/test_topo.py"),
    *("cli/test_bad_input.py", "test_corpus_job_findings.py"),
)
_FIRST = {f"tests/{name}": place for place, name in enumerate(_LONGEST)}
"""Half of the suite's time, longest first: with a file on one worker, one that begins last is what all wait for."""


def pytest_configure(config: pytest.Config) -> None:
    from tests import searches  # noqa: PLC0415 - not before --help

    folder = searches.share()
    if folder is not None:
        config.add_cleanup(lambda: searches.drop(folder))
    searches.use()
    gc.freeze()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    from tests.workers import ByFile  # noqa: PLC0415 - there is no xdist without workers

    return ByFile(config, log) if config.getoption("dist") == "loadfile" else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """Workers collect the same modules at the same time: each begins elsewhere, and finds the others' modules compiled.

    Compiling is most of a collection, as pytest rewrites each assertion.
    """
    worker: dict[str, Any] | None = getattr(session.config, "workerinput", None)
    root = session.config.rootpath
    if worker is None or any(not (root / path).is_dir() for path in session.config.args):
        return
    paths = sorted(path for folder in session.config.args for path in (root / folder).rglob("test_*.py"))
    first = len(paths) * int(worker["workerid"].removeprefix("gw")) // worker["workercount"]
    for path in paths[first:] + paths[:first]:
        # what cannot be imported is skipped, or told by the collection
        with contextlib.suppress(Exception, pytest.skip.Exception):
            import_module(".".join(path.relative_to(root).with_suffix("").parts))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: _FIRST.get(item.nodeid.partition("::")[0], len(_FIRST)))


def pytest_collection_finish() -> None:
    """What is loaded by now stays to the end: it is left out of each search for garbage."""
    from tests import kept  # noqa: PLC0415 - not for each worker's start

    kept.keep_longer()
    gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """A worker sends one report of a test that passes in place of three.

    That a setup and a teardown passed is shown nowhere, nor, without -v, that a test begins and ends, nor ever which
    words -k could have found it by: packing, sending and unpacking that is more than what pytest takes for the test
    itself. All is sent where times, or a file of results, are asked for.
    """
    if gc.get_count()[0] > _OBJECTS:
        gc.collect()
        gc.freeze()
    options = item.config.option
    told = options.durations is not None or options.xmlpath or options.verbose > 0
    if told or not hasattr(item.config, "workerinput"):
        return None
    for report in runtestprotocol(item, nextitem=nextitem, log=False):
        if report.passed:
            report.keywords = {}
        if report.when == "call" or not report.passed:
            item.ihook.pytest_runtest_logreport(report=report)
    return True
