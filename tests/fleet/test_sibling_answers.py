"""What is told of siblings once is what would be told of each."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from hashlib import sha256
from typing import Any, Literal

import pytest

from fixtures.generate import bundle
from fixtures.generate.machines.dgx_h100 import dgx_h100
from topodiag.checks.registry import Subject
from topodiag.checks.run import run
from topodiag.evidence.intake.bundle import Evidence, from_files
from topodiag.evidence.intake.reader import read_node
from topodiag.fleet.digest import counted_of, digest_of, lasting_of
from topodiag.fleet.sibling_answers import answers_of
from topodiag.fleet.sibling_nodes import HOST, Pattern, Siblings
from topodiag.model.node import Node


def _capture(host: str, **counts: int) -> Evidence:
    """A DGX H100 of this name with identities, uptime and, of `mlx5_4`, counters of its own."""
    machine = dgx_h100("dgx-XXXXX")
    machine.nic("mlx5_4").counters.update(counts)
    uptime, own = f"{machine.uptime_s:.2f}", f"{hash_of(host):08x}"
    files = {
        name: text.replace("dgx-XXXXX", host).replace(uptime, f"{machine.uptime_s + hash_of(host) % 977:.2f}")
        .replace("a51f73d5", own).replace("a51f", own[:4]).encode()
        for name, text in bundle.files(machine).items()
    }  # fmt: skip
    return from_files(f"{host}.tar.gz", files)


def hash_of(host: str) -> int:
    return int(sha256(host.encode()).hexdigest()[:7], 16) + 2**28


@pytest.fixture(scope="module")
def read() -> tuple[Siblings, Pattern]:
    siblings = Siblings()
    siblings.read(_capture("dgx-00001"))
    _, pattern = siblings.read(_capture("dgx-00002", link_downed=0))
    assert pattern is not None
    return siblings, pattern


def test_a_digest_of_siblings_is_what_reading_the_node_gives(read: tuple[Siblings, Pattern]) -> None:
    siblings, pattern = read
    for evidence in (
        _capture("dgx-00004", link_downed=90_000),
        _capture("gpu-rack7-node12"),
    ):
        node, of = siblings.read(evidence)
        assert of is pattern
        expected = digest_of(read_node(evidence).node, evidence.path)
        assert digest_of(node, evidence.path, answers_of(of)) == expected
        assert ("NIC003" in {finding.id for finding in expected.findings}) is (evidence.host == "dgx-00004")


def test_an_answer_is_asked_of_each_node_only_where_it_looks_at_what_varies(
    read: tuple[Siblings, Pattern], monkeypatch: pytest.MonkeyPatch
) -> None:
    siblings, _ = read
    evidence = _capture("dgx-00006")
    node, pattern = siblings.read(evidence)
    assert pattern is not None
    answers = answers_of(pattern)
    asked: list[tuple[str, ...]] = []

    def counted_run(subject: Literal[Subject.NODE], judged: Sequence[Node], only: Collection[str] = ()) -> Any:
        asked.append(tuple(only))
        return run(subject, judged, only)

    def counted_lasting(node: Node) -> Any:
        asked.append(("lasting",))
        return lasting_of(node)

    monkeypatch.setattr("topodiag.fleet.sibling_answers.run", counted_run)
    monkeypatch.setattr("topodiag.fleet.digest.lasting_of", counted_lasting)
    assert digest_of(node, evidence.path, answers) == digest_of(node, evidence.path)
    checks, *others = asked
    assert "NIC003" in checks, "the errors of ports are judged by their rate"
    assert not {"GPU001", "NVL001", "PCI001"} & set(checks)
    assert len(checks) < 8
    assert others == [("lasting",)], "asked for the plain digest alone"


def test_the_sign_for_the_host_is_in_no_answer(read: tuple[Siblings, Pattern]) -> None:
    siblings, pattern = read
    evidence = _capture("dgx-00007", link_downed=90_000)
    digest = digest_of(siblings.read(evidence)[0], evidence.path, answers_of(pattern))
    assert HOST not in repr(digest)


def test_what_is_told_without_a_pattern_is_told_of_the_node() -> None:
    node = read_node(_capture("dgx-00008", link_downed=5)).node
    digest = digest_of(node, "x")
    assert (digest.facts, digest.numbers) == lasting_of(node)
    assert (digest.counters, digest.counted, digest.carried) == counted_of(node)
    assert digest.findings == tuple(f for outcome in run(Subject.NODE, [node]) for f in outcome.findings)
