"""The watch of a node: changes alone are written, memory and disk are bounded, and nothing that hangs stops it."""

import json
import threading
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.files import laid
from topodiag_probes.interface import Context, Outcome
from topodiag_probes.run import Groups
from topodiag_probes.tree import Root
from topodiag_probes.watch import command, gpus, prometheus, states
from topodiag_probes.watch.journal import Journal
from topodiag_probes.watch.kernel import MAX_READS, Kernel
from topodiag_probes.watch.loop import ALIVE_S, Clock, Source, Watch
from topodiag_probes.watch.states import Values

PORT = ("mlx5_0/1", "state")


class Hand(Clock):
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 1000.0

    def wall(self) -> float:
        return self.now + 1.7e9

    def up(self) -> float:
        return self.now


class Node:
    """A watch of values that the test sets."""

    def __init__(self, folder: Path, **journal: int) -> None:
        self.now: Values | None = {PORT: "ACTIVE"}
        self.clock = Hand()
        self.journal = Journal(str(folder), "gpu07", **journal)
        self.source = Source("sysfs", 0.0, lambda: dict(self.now) if self.now is not None else None)
        self.watch = Watch("gpu07", "boot-1", [self.source], self.journal, clock=self.clock)

    def turn(self, after_s: float = 10.0, **values: Any) -> None:
        self.clock.now += after_s
        if values and self.now is not None:
            self.now.update({("mlx5_0/1", key): value for key, value in values.items()})
        self.watch.turn()

    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in Path(self.journal.path()).read_text().splitlines()]


def tree(root: Path, files: dict[str, str]) -> Root:
    return Root(str(laid(root, files)))


def test_a_file_begins_with_all_values_and_goes_on_with_changes_alone(tmp_path: Path) -> None:
    node = Node(tmp_path)
    node.turn()
    node.turn()
    node.turn(state="DOWN")
    first, value, change = node.lines()
    assert (first["watch"], first["host"], first["boot"]) == (1, "gpu07", "boot-1")
    assert (value["part"], value["key"], value["value"]) == ("mlx5_0/1", "state", "ACTIVE")
    assert (change["was"], change["value"], change["seen"], change["up"]) == ("ACTIVE", "DOWN", 1020.0, 1030.0)


def test_a_value_that_is_gone_is_a_change_and_no_answer_is_none(tmp_path: Path) -> None:
    node = Node(tmp_path)
    node.turn()
    node.now = None
    node.turn()
    assert [line.get("part") for line in node.lines()[2:]] == ["watch"], "only the source's own state changed"
    node.now = {}
    node.turn()
    assert [(line["part"], line["value"]) for line in node.lines()[3:]] == [("mlx5_0/1", None), ("watch", "answers")]


def test_a_quiet_node_says_that_it_is_still_watched(tmp_path: Path) -> None:
    node = Node(tmp_path)
    for _ in range(100):
        node.turn()
    alive = [line["up"] for line in node.lines() if line.get("alive")]
    assert len(node.lines()) == 2 + len(alive)
    assert [later - before for before, later in pairwise(alive)] == [ALIVE_S] * (len(alive) - 1)


def test_the_file_is_rotated_by_its_size_and_each_begins_with_all_values(tmp_path: Path) -> None:
    node = Node(tmp_path, limit=600, keep=3)
    for number in range(200):
        node.turn(link_downed=number)
    files = sorted(path.name for path in tmp_path.iterdir())
    assert files == ["gpu07.1.watch.jsonl", "gpu07.2.watch.jsonl", "gpu07.watch.jsonl"]
    for path in tmp_path.iterdir():
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        assert "watch" in lines[0]
        assert {line["key"] for line in lines if line.get("value") is not None} == {"state", "link_downed"}
        assert path.stat().st_size < 600 + 400


def test_a_change_on_the_way_into_a_new_file_is_not_lost(tmp_path: Path) -> None:
    node = Node(tmp_path, limit=1, keep=2)
    node.turn()
    node.turn(state="DOWN")
    assert [line.get("was") for line in node.lines()] == [None, "ACTIVE", None]


def test_a_full_disk_costs_lines_and_they_are_counted(tmp_path: Path) -> None:
    node = Node(tmp_path)
    node.turn()
    node.journal.folder = str(tmp_path / "gone")
    node.turn(state="DOWN")
    node.turn(state="ACTIVE")
    node.journal.folder = str(tmp_path)
    node.turn(state="DOWN")
    assert node.lines()[2] == {"lost": 2}
    assert node.lines()[3]["value"] == "DOWN"


def test_a_source_that_hangs_holds_one_thread_and_not_the_others(tmp_path: Path) -> None:
    release = threading.Event()
    begun: list[int] = []

    def stuck() -> Values:
        begun.append(1)
        release.wait(10)
        return {("gpu0", "state"): "answers"}

    node = Node(tmp_path)
    node.watch.sources = [Source("nvml", 0.0, stuck), node.source]
    node.watch.every_s = 0.01
    for _ in range(5):
        node.turn()
    node.turn(state="DOWN")
    assert len(begun) == 1
    shown = [(line["part"], line["value"]) for line in node.lines() if "was" in line and line["seen"] is not None]
    assert shown == [("watch", "hangs"), ("mlx5_0/1", "DOWN")]
    assert 'topodiag_watch_source_hangs{source="nvml"} 1' in prometheus.text(node.watch)
    release.set()


def test_the_last_line_says_why_the_watch_ended(tmp_path: Path) -> None:
    node = Node(tmp_path)
    node.turn()
    node.watch.stop("told to stop")
    assert node.lines()[-1]["end"] == "told to stop"


def test_the_exposition_counts_downs_and_how_long(tmp_path: Path) -> None:
    node = Node(tmp_path)
    node.turn(link_downed=3)
    node.turn(state="DOWN", link_downed=4)
    node.turn()
    text = prometheus.text(node.watch)
    assert 'topodiag_watch_up{part="mlx5_0/1"} 0\n' in text
    assert 'topodiag_watch_down_seconds{part="mlx5_0/1"} 10\n' in text
    assert 'topodiag_watch_downs_total{part="mlx5_0/1"} 1\n' in text
    assert 'topodiag_watch_errors_total{part="mlx5_0/1",counter="link_downed"} 4\n' in text


def test_the_exposition_is_what_a_prometheus_parser_reads(tmp_path: Path) -> None:
    from prometheus_client.parser import text_string_to_metric_families  # noqa: PLC0415

    node = Node(tmp_path)
    node.now = {('bad"name\\\n', "state"): "up", ("0000:1a:00.0", "width"): 16}
    node.turn()
    prometheus.write(node.watch, str(tmp_path / "a.prom"))
    families = {family.name: family for family in text_string_to_metric_families((tmp_path / "a.prom").read_text())}
    assert families["topodiag_watch_up"].samples[0].labels == {"part": 'bad"name\\\n'}
    assert families["topodiag_watch_pcie_lanes"].samples[0].value == 16
    assert [path.name for path in tmp_path.iterdir() if path.name.endswith(".tmp")] == []


def test_an_interface_that_is_switched_off_is_not_down(tmp_path: Path) -> None:
    node = Node(tmp_path)
    node.turn(state="off")
    text = prometheus.text(node.watch)
    assert "topodiag_watch_up{" not in text
    assert node.watch.downs == {}


def test_sysfs_tells_ports_interfaces_and_lanes(tmp_path: Path) -> None:
    root = tree(
        tmp_path,
        {
            "sys/class/infiniband/mlx5_0/ports/1/state": "4: ACTIVE\n",
            "sys/class/infiniband/mlx5_0/ports/1/phys_state": "5: LinkUp\n",
            "sys/class/infiniband/mlx5_0/ports/1/rate": "400 Gb/sec (4X NDR)\n",
            "sys/class/infiniband/mlx5_0/ports/1/counters/link_downed": "2\n",
            "sys/class/infiniband/mlx5_0/ports/1/counters/symbol_error": "none\n",
            "sys/class/net/eth0/device/vendor": "",
            "sys/class/net/eth0/carrier": "0\n",
            "sys/class/net/eth0/flags": "0x1003\n",
            "sys/class/net/eth0/carrier_changes": "7\n",
            "sys/class/net/eth1/device/vendor": "",
            "sys/class/net/eth1/flags": "0x1002\n",
            "sys/class/net/docker0/carrier": "0\n",
            "sys/bus/pci/devices/0000:1a:00.0/class": "0x030200\n",
            "sys/bus/pci/devices/0000:1a:00.0/current_link_width": "16\n",
            "sys/bus/pci/devices/0000:1a:00.0/current_link_speed": "2.5 GT/s PCIe\n",
            "sys/bus/pci/devices/0000:1a:00.0/aer_dev_correctable": "RxErr 3\nTOTAL_ERR_COR 3\n",
            "sys/bus/pci/devices/0000:00:00.0/class": "0x060000\n",
        },
    )
    assert states.sample(root) == {
        ("mlx5_0/1", "state"): "ACTIVE",
        ("mlx5_0/1", "phys_state"): "LinkUp",
        ("mlx5_0/1", "rate"): "400 Gb/sec (4X NDR)",
        ("mlx5_0/1", "link_downed"): 2,
        ("eth0", "state"): "down",
        ("eth0", "carrier_changes"): 7,
        ("eth1", "state"): "off",
        ("0000:1a:00.0", "present"): "yes",
        ("0000:1a:00.0", "width"): 16,
        ("0000:1a:00.0", "aer_dev_correctable"): 3,
    }, "of an idle GPU the speed is no news"


def test_values_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(states, "MAX_VALUES", 3)
    files = {f"sys/class/infiniband/mlx5_{n}/ports/1/state": "4: ACTIVE" for n in range(9)}
    assert len(states.sample(tree(tmp_path, files))) == 3


def _nvml(document: object, status: str = "ok") -> Values | None:
    def ask(_ctx: Context, _end: float, out: Outcome) -> None:
        out.status, out.data = status, json.dumps(document).encode()

    return gpus.sample(Context(Root("/"), Groups(), {}), 0.0, ask)


def test_nvml_tells_links_and_a_gpu_that_is_lost() -> None:
    link = {"link": 6, "state": 0, "errors": {"replay": 4, "crc_data": {"error": "NotSupported"}}}
    gpu = {"index": 0, "pcie_replay": 2, "ecc_uncorrected": {"error": "NotSupported"}, "remapped_rows": [0, 1, 0, 0]}
    assert _nvml({"gpus": [gpu | {"nvlinks": [link]}, {"index": 1, "error": "GpuIsLost"}]}) == {
        ("gpu0", "state"): "answers",
        ("gpu0", "pcie_replay"): 2,
        ("gpu0", "remapped_rows"): 1,
        ("gpu0/link6", "state"): "inactive",
        ("gpu0/link6", "replay"): 4,
        ("gpu1", "state"): "GpuIsLost",
    }


def test_nvml_that_is_not_there_has_no_values_and_one_that_hangs_no_answer() -> None:
    assert _nvml({"error": "pynvml not importable"}, "absent") == {}
    assert _nvml({}, "timeout") is None


XID = "3,99,120000000,-;NVRM: Xid (PCI:0000:1A:00): 79, pid=1, GPU has fallen off the bus.\n"


def test_xids_are_those_that_come_and_one_in_five_minutes(tmp_path: Path) -> None:
    root = tree(tmp_path, {"dev/kmsg": XID})
    kernel = Kernel(root)
    assert kernel.news(0.0) == [], "what was there before the watch is the capture's to tell"
    with (tmp_path / "dev/kmsg").open("a") as log:
        log.write(XID * 3 + XID.replace("79", "31"))
    assert [(event.part, event.code) for event in kernel.news(0.0)] == [("0000:1a:00", 79), ("0000:1a:00", 31)]
    with (tmp_path / "dev/kmsg").open("a") as log:
        log.write(XID)
    assert kernel.news(299.0) == []
    with (tmp_path / "dev/kmsg").open("a") as log:
        log.write(XID)
    assert [event.code for event in kernel.news(301.0)] == [79]
    kernel.close()


def test_a_flood_in_the_kernel_log_takes_a_bounded_turn(tmp_path: Path) -> None:
    kernel = Kernel(tree(tmp_path, {"dev/kmsg": ""}))
    reads: list[int] = []
    kernel._record = lambda: reads.append(1) or b"x"  # type: ignore[method-assign,func-returns-value]
    kernel.news(0.0)
    assert len(reads) == MAX_READS
    kernel.close()


def test_a_kernel_log_that_cannot_be_read_is_said(tmp_path: Path) -> None:
    kernel = Kernel(Root(str(tmp_path)))
    assert kernel.why
    watch = Watch("gpu07", "", [], Journal(str(tmp_path), "gpu07"), kernel, Hand())
    watch.turn()
    first = json.loads(Path(watch.journal.path()).read_text().splitlines()[0])  # type: ignore[union-attr]
    assert first["sees"]["kernel"] == kernel.why


def test_the_command_ends_when_it_is_told_to(tmp_path: Path) -> None:
    stop = threading.Event()
    texts: list[str] = []
    root = tree(tmp_path / "root", {"proc/sys/kernel/hostname": "gpu07\n"})

    def tell(words: str) -> None:
        texts.append(words)
        stop.set()

    command.watch(command.Options(str(tmp_path), every_s=0.1, root=root.path), stop, tell)
    assert texts == [f"watching gpu07 every 0.1 s; changes go to {tmp_path}/gpu07.watch.jsonl\n"]


def test_a_textfile_that_cannot_be_written_is_told_once_and_does_not_end_the_watch(tmp_path: Path) -> None:
    texts: list[str] = []
    place = tmp_path / "a.prom"
    place.mkdir()
    options = command.Options(None, str(place), every_s=0.01, times=3, root=str(tmp_path))
    command.watch(options, threading.Event(), texts.append)
    assert len(texts) == 2


@pytest.mark.parametrize("options", [command.Options(None), command.Options("/nowhere/at/all")])
def test_a_place_that_takes_no_file_is_refused_before_the_first_sample(options: command.Options) -> None:
    with pytest.raises(command.RefusedError):
        command.watch(options, threading.Event(), lambda _: None)
