"""`fleet collect` over real ssh: nodes that answer, refuse, hang, die, shout, and whose disks are full."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from benchmarks import fleet_ssh
from benchmarks.fleet_ssh import Node
from tests.program import environment
from topodiag.fleet.collect import interface
from topodiag.fleet.collect.archive import archive
from topodiag.fleet.collect.interface import Request
from topodiag.fleet.collect.run import collect
from topodiag.fleet.collect.ssh import Ssh
from topodiag.model.collect import Collection

_LACKING = fleet_ssh.lacking()
pytestmark = pytest.mark.skipif(bool(_LACKING), reason=f"no fleet of sshd here: {_LACKING}")

SLOW = ("a driver that hangs", "a login that hangs", "sshd says nothing")
QUICK = tuple(kind for kind in fleet_ssh.KINDS if kind not in SLOW)


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[list[Node], str]]:
    """One node of each kind."""
    with fleet_ssh.fleet([*QUICK, *SLOW], tmp_path_factory.mktemp("fleet")) as pair:
        yield pair


def ask(nodes: tuple[list[Node], str], to: Path, kinds: tuple[str, ...], connect_s: int) -> Collection:
    wanted = [node.name for node in nodes[0] if node.kind in kinds]
    request = Request(archive(), "", deadline_s=4.0, connect_s=connect_s, ssh_options=nodes[1])
    return collect(Ssh(), wanted, str(to), request, whole_s=120)


def told_wrong(nodes: tuple[list[Node], str], done: Collection) -> list[str]:
    asked = {answer.node for answer in done.answers}
    states = {answer.node: (answer.state.value, answer.why) for answer in done.answers}
    return fleet_ssh.wrong([node for node in nodes[0] if node.name in asked], states)


@pytest.fixture(scope="module")
def both(
    nodes: tuple[list[Node], str], tmp_path_factory: pytest.TempPathFactory
) -> tuple[tuple[Collection, Path], tuple[Collection, Path]]:
    """The collections of the quick nodes and of the slow ones, made at the same time."""
    quick, slow = tmp_path_factory.mktemp("quick"), tmp_path_factory.mktemp("slow")
    with pytest.MonkeyPatch.context() as patch, ThreadPoolExecutor(1) as second:
        patch.setattr(interface, "GRACE_S", 4.0)
        waited = second.submit(ask, nodes, slow, SLOW, 4)
        done = ask(nodes, quick, QUICK, connect_s=60)  # the machine may be busy: who answers takes what it takes
        return (done, quick), (waited.result(), slow)


@pytest.fixture(scope="module")
def quick(both: tuple[tuple[Collection, Path], tuple[Collection, Path]]) -> tuple[Collection, Path]:
    return both[0]


@pytest.fixture(scope="module")
def slow(both: tuple[tuple[Collection, Path], tuple[Collection, Path]]) -> tuple[Collection, Path]:
    return both[1]


def test_nodes_that_answer_refuse_die_or_shout_are_told_as_what_they_are(
    nodes: tuple[list[Node], str], quick: tuple[Collection, Path]
) -> None:
    assert told_wrong(nodes, quick[0]) == []


def test_nodes_that_hang_are_told_with_what_they_hang_in(
    nodes: tuple[list[Node], str], slow: tuple[Collection, Path]
) -> None:
    assert told_wrong(nodes, slow[0]) == []


def test_what_a_node_whose_disks_are_full_and_one_that_prints_banners_send_is_whole(
    nodes: tuple[list[Node], str], quick: tuple[Collection, Path]
) -> None:
    done, to = quick
    assert subprocess.run(["sha256sum", "-c", "--quiet", "SHA256SUMS"], cwd=to, check=False).returncode == 0
    hosts = {answer.node: answer.host for answer in done.answers if answer.file}
    assert hosts == {name: name for name in hosts}
    assert len(hosts) == 3


def test_the_driver_that_hung_is_in_the_evidence(nodes: tuple[list[Node], str], slow: tuple[Collection, Path]) -> None:
    from topodiag.app.scan import scan  # noqa: PLC0415 - for this test alone

    done, to = slow
    (hung,) = (answer for answer in done.answers if "nvidia-smi" in answer.why)
    result = scan([str(to)])
    assert [node.host for node in result.nodes] == [hung.node]


def test_only_the_node_that_was_not_reached_was_asked_again(slow: tuple[Collection, Path]) -> None:
    assert sorted(answer.attempts for answer in slow[0].answers) == [1, 1, 2]


def test_nothing_of_ours_is_left_on_nodes_that_answered(
    nodes: tuple[list[Node], str], quick: tuple[Collection, Path]
) -> None:
    answered = [node for node in nodes[0] if node.kind in {"healthy", "banners", "disks are full"}]
    assert {name: left for name, left in left_on(answered).items() if left} == {}


def left_on(nodes: list[Node]) -> dict[str, list[str]]:
    """What runs on these nodes but sshd, after a moment for it to end."""
    end = time.monotonic() + 5
    while any(node.processes() for node in nodes) and time.monotonic() < end:
        time.sleep(0.1)
    return {node.name: node.processes() for node in nodes}


def test_ctrl_c_ends_the_collectors_on_the_nodes_and_keeps_what_came(
    nodes: tuple[list[Node], str], tmp_path: Path
) -> None:
    # --sample keeps the healthy node at work
    healthy = next(node for node in nodes[0] if node.kind == "healthy")
    argv = [sys.executable, "-m", "topodiag", "fleet", "collect", "--nodelist", healthy.name, "--to", str(tmp_path)]
    argv += ["--ssh-options", nodes[1], "--sample", "100s"]
    program = subprocess.Popen(argv, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    end = time.monotonic() + 30
    while not any("python3" in words for words in healthy.processes()) and time.monotonic() < end:
        time.sleep(0.05)
    assert any("python3" in words for words in healthy.processes())
    os.kill(program.pid, signal.SIGINT)
    _, complaint = program.communicate(timeout=20)
    assert program.returncode == 130, complaint
    assert left_on([healthy]) == {healthy.name: []}
    assert (tmp_path / "collect.json").exists()
