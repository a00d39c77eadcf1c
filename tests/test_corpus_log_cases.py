"""The corpus' cases from the field: which of the logs' facts and diagnoses come out, as a table with every miss."""

import json
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from topodiag.app.case.jobs import LogOptions
from topodiag.app.logs import logs as diagnose_logs
from topodiag.checks.nic.job import nics_of_plugin
from topodiag.model.errors import InputError
from topodiag.model.finding import Severity
from topodiag.model.job import Hca
from topodiag.model.result import Result

CASES = Path(__file__).resolve().parents[2] / "shared" / "corpus" / "cases"

EXPECTED = {
    "container-topology-missing": {"GDR001", "TOP003"},
    "duplicate-gpu": {"JOB004"},
    "gdr-missing-module": {"GDR001", "NET007"},
    "vm-topology-missing": {"TOP003"},
    "bootstrap-iface": {"NET002"},
    "resource-limit": {"HST001", "JOB005"},
    "net-socket-fallback": {"NET001", "NET005", "NET007", "JOB005"},
    "ib-error-timeout": {"NET008"},
    "gid-index": {"NET008", "JOB005"},
    "rail-misconfig": {"NET008", "JOB005", "NET004"},
    "p2p-disabled-acs": {"P2P001", "P2P002"},
    "fabric-manager": {"JOB005"},
    "version-mismatch": {"JOB002"},
    "collective-mismatch": {"JOB006", "JOB005"},
    "nic-selection": {"NET007", "GDR001", "JOB005"},
    "env-misconfig": {"ENV001"},
    "numa-affinity": {"NUM001", "NUM002"},
    "ofi-plugin": {"NET005", "GDR001"},
}
"""Check ids of which one says what the thread's diagnosis says; categories without an entry claim none."""
HEALTHY = {"expectation-wrong", "reference-healthy"}


@dataclass(frozen=True)
class Case:
    id: str
    category: str
    facts: dict[str, Any]
    result: Result | None
    why: str = ""


def _hcas(result: Result) -> list[Hca]:
    return list(dict.fromkeys(hca for job in result.jobs for process in job.processes for hca in process.hcas))


def _versions(result: Result) -> set[str]:
    return {version for job in result.jobs for version in job.nccl_versions}


def _settings(result: Result) -> dict[str, set[str]]:
    return {name: set(values) for job in result.jobs for name, values in job.settings().items()}


def _systems(result: Result) -> Iterator[Any]:
    for job in result.jobs:
        for comm in job.communicators:
            yield from comm.systems.values()
        yield from (process.system for process in job.processes if process.system is not None)


def _buses(result: Result) -> set[str]:
    return {rank.bus_id for job in result.jobs for rank in job.ranks}


def _bus(packed: str) -> str:
    value = int(packed, 16)
    return f"{value >> 20:04x}:{value >> 12 & 0xFF:02x}:{value >> 4 & 0xFF:02x}.{value & 0xF:x}"


def _details(result: Result, name: str) -> set[str]:
    return {event.details[name] for job in result.jobs for event in job.events if name in event.details}


def _said(result: Result) -> str:
    words = [event.text for job in result.jobs for event in job.events]
    words += [message.text for job in result.jobs for process in job.processes for message in process.messages]
    words += [process.bootstrap for job in result.jobs for process in job.processes]
    return "\n".join(words)


FACTS: dict[str, Callable[[Result, Any], bool]] = {
    "nccl": lambda r, v: v in _versions(r),
    "net": lambda r, v: any(v == process.network for job in r.jobs for process in job.processes),
    "nics": lambda r, v: (
        (len(_hcas(r)) or max((count for job in r.jobs for count, _ in nics_of_plugin(job).values()), default=0)) == v
        if isinstance(v, int)
        else {nic["name"] for nic in v} <= {hca.name for hca in _hcas(r)}
        and {nic["link"] for nic in v if "link" in nic} <= {hca.link_layer.split("/")[0] for hca in _hcas(r)}
    ),
    "nics_used": lambda r, v: len(_hcas(r)) == v if isinstance(v, int) else set(v) <= {hca.name for hca in _hcas(r)},
    "nranks": lambda r, v: (
        any(v == comm.nranks for job in r.jobs for comm in job.communicators)
        or any(v == job.world_size for job in r.jobs)
    ),
    "duplicate": lambda r, v: all(
        any(
            {str(a), str(b)} <= set(re.findall(r"\d+", event.details.get("ranks", "")))
            for job in r.jobs
            for event in job.events
        )
        for a, b in v
    ),
    "busid": lambda r, v: v in _details(r, "bus_id") or _bus(v) in _details(r, "bus_id") | _buses(r),
    "maxBw": lambda r, v: any(system.max_gbs == v for system in _systems(r)),
    "totalBw": lambda r, v: any(system.total_gbs == v for system in _systems(r)),
    "env": lambda r, v: all(value in _settings(r).get(name, set()) for name, value in v.items()),
    "status": lambda r, v: str(v) in _details(r, "status"),
    "error": lambda r, v: str(v) in _details(r, "status") or str(v) in _said(r),
    "vendor_err": lambda r, v: str(v) in _details(r, "vendor_err"),
    "peer": lambda r, v: any(v in peer for peer in _details(r, "peer")) or v in _said(r),
    "bootstrap_if": lambda r, v: any(process.bootstrap.startswith(v) for job in r.jobs for process in job.processes),
    "coll_channels": lambda r, v: any(v == comm.channels.coll for job in r.jobs for comm in job.communicators),
    "gdr_disabled_hcas": lambda r, v: set(v) <= {hca.name for hca in _hcas(r) if hca.gdr is False},
    "plugin": lambda r, v: all(word in _said(r) for word in str(v).split()),
    "p2p_disabled_pairs": lambda r, v: all(str(a) in _said(r) and str(b) in _said(r) for a, b in v),
    "nNodes": lambda r, v: any(v == comm.nodes for job in r.jobs for comm in job.communicators),
    "nRanks": lambda r, v: any(v == comm.nranks for job in r.jobs for comm in job.communicators),
    **dict.fromkeys(("iface", "provider", "warn", "errno_text", "segment_bytes"), lambda r, v: str(v) in _said(r)),
    **dict.fromkeys(("ifaces", "warns"), lambda r, v: all(text in _said(r) for text in v)),
}


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> list[Case]:
    if not CASES.is_dir():
        pytest.skip(f"the corpus is not at {CASES}: nothing was compared")
    made = []
    folder = tmp_path_factory.mktemp("cases")
    for path in sorted(CASES.glob("*.json")):
        case = json.loads(path.read_text())
        texts = [each["text"] for each in case["inputs"] if each["kind"] == "nccl_log"]
        if not texts:
            continue
        # A file of a repository keeps its name: it is evidence as the user has it.
        place = case["url"].partition("#")[0].rpartition("/")[2]
        log = folder / (f"{case['id']}-{place}" if place.endswith(".log") else f"{case['id']}.log")
        log.write_text("\n".join(texts) + "\n")
        try:
            result, why = diagnose_logs([str(log)], options=LogOptions(workers=1)), ""
        except InputError as error:
            result, why = None, str(error)
        made.append(Case(case["id"], case["category"], case["facts"], result, why))
    return made


def test_most_facts_of_the_logs_come_out(cases: list[Case], capsys: pytest.CaptureFixture[str]) -> None:
    agreed, missed, texts = 0, [], []
    for case in cases:
        for name, value in case.facts.items():
            if name not in FACTS:
                texts.append(f"{case.id} {name}")
            elif case.result is not None and FACTS[name](case.result, value):
                agreed += 1
            else:
                missed.append(f"{case.id} {name} = {value} {case.why}")
    with capsys.disabled():
        sys.stdout.write(f"\nfacts of {len(cases)} logs: {agreed} agree, {len(missed)} do not, {len(texts)} apart\n")
        sys.stdout.writelines(f"  missed {text}\n" for text in missed)
        sys.stdout.write(f"  not compared: {', '.join(texts)}\n")
    assert agreed >= 0.9 * (agreed + len(missed))


def test_diagnoses_agree_with_the_threads(cases: list[Case], capsys: pytest.CaptureFixture[str]) -> None:
    agreed, missed = 0, []
    for case in cases:
        wanted = EXPECTED.get(case.category)
        if wanted is None:
            continue
        texts = {finding.id for finding in case.result.findings} if case.result else set()
        if wanted & texts:
            agreed += 1
        else:
            missed.append(
                f"{case.id} {case.category}: wanted one of {sorted(wanted)}, found {sorted(texts)} {case.why}"
            )
    with capsys.disabled():
        sys.stdout.write(f"\ndiagnoses: {agreed} agree, {len(missed)} do not\n")
        sys.stdout.writelines(f"  missed {text}\n" for text in missed)
    assert agreed >= 0.75 * (agreed + len(missed))


def test_healthy_cases_give_no_error(cases: list[Case]) -> None:
    wrong = [
        (case.id, finding.id, finding.message)
        for case in cases
        if case.category in HEALTHY and case.result is not None
        for finding in case.result.findings
        if finding.severity is Severity.ERROR
    ]
    assert wrong == []
