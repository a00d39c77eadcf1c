"""The corpus' topologies: every path, bandwidth and refusal that NCCL printed for them, and the systems of its jobs.

Truth is of NCCL itself on emulated machines (see the corpus' own README). What only the search can refuse - no channel,
and no NIC to fall back to - is left to the search's own tests. Files drawn by chance are asked for two of six answers,
and a third of the ranks of a job for their system; TOPODIAG_TESTS=deep asks all.
"""

import gzip
import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.depth import some_of
from tests.nccl.corpus import ABSENT, JOB_NAMES, JOBS, TOPOLOGIES, is_bare, system_of, topology, truth_of
from topodiag.evidence.nccl_xml import read_file
from topodiag.model.nccl_tree import Element
from topodiag.model.nccl_versions import minor_of
from topodiag.nccl.graph.attach import HostTree
from topodiag.nccl.graph.domains import build_system
from topodiag.nccl.graph.paths import path_table
from topodiag.nccl.settings import read_settings

if not TOPOLOGIES:
    pytest.skip(ABSENT, allow_module_level=True)


def questions(name: str) -> Iterator[tuple[int, int, dict[str, Any]]]:
    """Minor version, nodes, truth."""
    for version, by_nodes in truth_of(name).items():
        for nodes, answer in by_nodes.items():
            yield minor_of(version), int(nodes), answer


@pytest.mark.parametrize("name", TOPOLOGIES)
def test_every_system_of_the_corpus_is_as_nccl_printed_it(name: str) -> None:
    file = topology(name)
    for minor, nodes, truth in some_of(list(questions(name)), name, always=not name.startswith("gen")):
        about = f"2.{minor}, {nodes} nodes"
        words = (truth.get("warn") or [""])[0]
        refusal = file.refusal(minor)
        if refusal is not None:
            assert not truth["accepted"], about
            assert refusal.words.startswith(words[:40]), about
            continue
        system = system_of(name, minor, nodes)
        if isinstance(system, str):
            assert not truth["accepted"], (about, system)
            assert words in ("", system), about
            continue
        if is_bare(truth):
            assert not system.nets, about
            continue
        assert truth["accepted"], (about, words)
        counts = {"gpus": len(system.gpus), "nets": len(system.nets), "nvs": len(system.nvs)}
        assert counts == truth["counts"], about
        assert system.max_bw == pytest.approx(truth["system"]["max_bw"], abs=0.051), about
        assert system.total_bw == pytest.approx(truth["system"]["total_bw"], abs=0.051), about
        if truth["paths"]:
            assert printed(path_table(system)) == truth["paths"], about


def printed(table: Any) -> dict[str, dict[str, list[Any]]]:
    """Without the kinds that the truth leaves out."""
    kinds = ("GPU", "NVS", "CPU", "NET")
    return {
        source: {target: list(path) for target, path in ways.items() if target.startswith(kinds)}
        for source, ways in table.items()
    }


def test_the_corpus_answers_for_three_versions_and_one_and_two_nodes() -> None:
    asked = {(minor, nodes) for name in TOPOLOGIES for minor, nodes, _ in questions(name)}
    assert asked == {(minor, nodes) for minor in (27, 28, 30) for nodes in (1, 2)}


# --- jobs: systems of single ranks in logs of more versions -------------------------------------------------

NOT_IN_THE_FILE = {
    "f_h100_2node_nonic_socket": "NICs are network interfaces that NCCL found on the machine",
    "h_h100_2node_nogdr": "the file was not given to NCCL, and the CPU is the machine's own",
    "h_gb200_2tray": "NCCL built for x86 doubles the CPUs of an Arm file",
}
DRIVER_SAYS = {"d_pcie8_nop2p": {"NCCL_P2P_DISABLE": "1"}}
"""What the driver of the emulated machine said, in the words of a setting with the same effect."""
_PATH = re.compile(r"((?:GPU|NVS|CPU|NET)/\S+) \(([0-9]+)/([0-9.]+)/(\w+)\)")


def compared_jobs() -> list[str]:
    ended = {name: json.loads((JOBS / name / "truth.json").read_text())["ended"] for name in JOB_NAMES}
    return [name for name in JOB_NAMES if ended[name] == "ok" and name not in NOT_IN_THE_FILE]


def plain(label: str) -> str:
    """`GPU/0-1b000` and `GPU/1B000` alike."""
    kind, _, local = label.partition("/")
    return f"{kind}/{local.rpartition('-')[2].lower()}"


def systems_in(log: Path) -> Iterator[list[str]]:
    """For every communicator of a rank the lines from `=== System` to the last path, in the order of set-up."""
    lines: list[str] | None = None
    with gzip.open(log, "rt", errors="replace") as file:
        for line in file:
            text = line.partition("NCCL INFO ")[2].rstrip("\n")
            if text.startswith("=== System"):
                lines = [text]
            elif lines is not None and text.startswith(("Setting affinity", "NVLS", "Pattern")):
                yield lines
                lines = None
            elif lines is not None and text:
                lines.append(text)


@pytest.mark.parametrize("name", compared_jobs())
def test_every_system_of_a_jobs_logs_is_as_each_rank_saw_it(name: str) -> None:
    folder = JOBS / name
    truth = json.loads((folder / "truth.json").read_text())
    minor = minor_of(truth["nccl_version"][0])
    env = dict(setting.split("=", 1) for setting in truth["settings"] if ":" not in setting)
    settings = read_settings({**env, **DRIVER_SAYS.get(name, {})}, minor)
    hosts = {rank["rank"]: rank["host"] for rank in truth["ranks"]}
    buses = {rank["rank"]: rank["bus_id"] for rank in truth["ranks"]}
    compared = 0
    for rank in some_of(list(hosts), name):
        host = hosts[rank]
        log = folder / "logs" / f"rank{rank:03d}.log.gz"
        tree = tree_in(given_file(folder, log))
        members = [communicator["ranks"] for communicator in truth["communicators"] if rank in communicator["ranks"]]
        for ranks, lines in zip(members, systems_in(log), strict=True):
            mine = {buses[each]: at for at, each in enumerate(ranks) if hosts[each] == host}
            system = build_system(
                [HostTree(tree, mine)], minor=minor, settings=settings, nranks=len(ranks), me=ranks.index(rank)
            )
            assert lines[0] == f"=== System : maxBw {system.max_bw:.1f} totalBw {system.total_bw:.1f} ==="
            table = {
                plain(key): {plain(to): way for to, way in ways.items()} for key, ways in path_table(system).items()
            }
            for line in lines:
                source, mark, ways = line.partition(" :")
                if not mark or plain(source) not in table:
                    continue
                for target, hops, bw, kind in _PATH.findall(ways):
                    path = table[plain(source)][plain(target)]
                    assert (path[0], path[2]) == (int(hops), kind), (rank, source, target)
                    assert path[1] == pytest.approx(float(bw), abs=0.051), (rank, source, target)
                    compared += 1
    assert compared


@cache
def tree_in(path: Path) -> Element:
    return read_file(path.read_bytes(), "topology").tree


def given_file(folder: Path, log: Path) -> Path:
    """The topology file that a rank was given, by its log; else the only one."""
    with gzip.open(log, "rt", errors="replace") as file:
        text = next((line for line in file if "NCCL_TOPO_FILE set by environment to" in line), "")
    named = folder / Path(text.split()[-1]).name if text else folder
    return named if named.is_file() else next(path for path in sorted(folder.glob("*.xml")) if path.name != "graph.xml")
