"""What `topodiag watch` wrote becomes spells of states: how long each was seen, and no longer."""

import json
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from topodiag.evidence.intake.kind_of_file import kind_of_file
from topodiag.evidence.kinds import Kind
from topodiag.evidence.live.watch_log import WatchLog, read_watch
from topodiag.model.history import Spell
from topodiag_probes.watch.journal import Journal
from topodiag_probes.watch.loop import Clock, Source, Watch
from topodiag_probes.watch.states import Values

PORT = "mlx5_0/1"
T = 1.7e9


def start(up: float = 1000.0, boot: str = "a") -> dict[str, Any]:
    return {"time": T + up, "up": up, "watch": 1, "host": "gpu07", "boot": boot, "every": 10}


def state(up: float, value: str | None, seen: float | None = None, key: str = "state", **more: Any) -> dict[str, Any]:
    return {"time": T + up, "up": up, "part": PORT, "key": key, "value": value, "seen": seen} | more


def alive(up: float) -> dict[str, Any]:
    return {"time": T + up, "up": up, "alive": True}


def read(*lines: dict[str, Any]) -> WatchLog:
    log = read_watch("\n".join(json.dumps(line) for line in lines).encode())
    assert log is not None
    return log


def spells(*lines: dict[str, Any]) -> list[tuple[str, float, float]]:
    (part,) = read(*lines).states
    return [(each.state, each.first_s, each.last_s) for each in part.spells]


def test_a_state_lasts_from_its_first_sample_to_the_last_that_showed_it() -> None:
    lines = (start(), state(1000, "ACTIVE"), state(1100, "DOWN", 1090), state(1160, "ACTIVE", 1150), alive(1400))
    assert spells(*lines) == [("ACTIVE", 1000, 1090), ("DOWN", 1100, 1150), ("ACTIVE", 1160, 1400)]


def test_a_boot_ends_all_states_and_a_new_start_of_the_watch_does_not() -> None:
    lines = [start(), state(1000, "DOWN"), start(1200), state(1200, "DOWN"), alive(1300)]
    assert spells(*lines) == [("DOWN", 1000, 1300)]
    again = spells(*lines, start(50, "b"), state(50, "DOWN"), alive(90))
    assert again == [("DOWN", 1000, 1300), ("DOWN", 50, 90)]


def test_a_port_that_is_switched_off_is_off_and_not_down() -> None:
    lines = (start(), state(1000, "ACTIVE"), state(1000, "LinkUp", key="phys_state"), state(1100, "DOWN", 1090),
             state(1100, "Disabled", 1090, key="phys_state"), alive(1200))  # fmt: skip
    assert spells(*lines) == [("ACTIVE", 1000, 1090), ("Disabled", 1100, 1200)]


def test_while_a_source_hangs_nobody_knows_how_long_a_state_lasts() -> None:
    hang = {"time": T + 1100, "up": 1100, "part": "watch", "key": "sysfs", "value": "hangs", "was": "answers"}
    assert spells(start(), state(1000, "DOWN"), alive(1050), hang, alive(5000)) == [("DOWN", 1000, 1050)]


def test_a_counter_that_says_that_it_fell_again_is_kept_with_the_spell() -> None:
    fell = state(1200, None, 1190, key="link_downed") | {"value": 5, "was": 4}
    late = state(1110, None, 1100, key="link_downed") | {"value": 4, "was": 3}
    (part,) = read(start(), state(1000, "ACTIVE"), state(1100, "DOWN", 1090), late, fell, alive(1500)).states
    assert part.spells[-1] == Spell("DOWN", "a", 1100, 1500, T + 1100, fallen=1)


def test_xids_are_kept_with_their_gpu() -> None:
    log = read(start(), {"time": T, "up": 1001, "part": "0000:1a:00", "event": "xid", "code": 79, "text": "..."})
    assert [(xid.part, xid.code) for xid in log.xids] == [("0000:1a:00", 79)]


def test_what_the_watch_writes_is_what_is_read(tmp_path: Path) -> None:
    class Hand(Clock):
        now = 1000.0

        def wall(self) -> float:
            return T + self.now

        def up(self) -> float:
            return self.now

    values: Values = {(PORT, "state"): "ACTIVE"}
    clock = Hand()
    watch = Watch("gpu07", "a", [Source("s", 0, lambda: dict(values))], Journal(str(tmp_path), "gpu07"), clock=clock)
    for second in range(0, 700, 10):
        clock.now = 1000.0 + second
        values[PORT, "state"] = "DOWN" if 100 <= second < 150 else "ACTIVE"
        watch.turn()
    watch.stop("told to stop")
    data = (tmp_path / "gpu07.watch.jsonl").read_bytes()
    assert kind_of_file(data).kind is Kind.WATCH
    log = read_watch(data)
    assert [(each.state, each.length_s) for each in log.states[0].spells] == [
        ("ACTIVE", 90.0), ("DOWN", 40.0), ("ACTIVE", 540.0),
    ]  # fmt: skip
    assert log.unread == 0


def test_lines_that_are_none_are_counted_and_a_file_without_a_node_is_none() -> None:
    data = json.dumps(start()).encode() + b'\n{"half": \n[1]\n' + json.dumps(state(1000, "ACTIVE")).encode()
    log = read_watch(data)
    assert (log.unread, len(log.states)) == (2, 1)
    assert read_watch(b"{}\n") is None


_LINE = st.fixed_dictionaries(
    {"time": st.just(1.0), "up": st.floats() | st.text() | st.none()},
    optional={name: st.none() | st.integers() | st.text(max_size=5) | st.sampled_from(["state", "link_downed", "xid"])
              for name in ("part", "key", "value", "was", "seen", "event", "code", "boot", "watch", "host")},
)  # fmt: skip


@given(st.lists(_LINE, max_size=8))
def test_any_values_are_read_without_an_exception(lines: list[dict[str, Any]]) -> None:
    read_watch("\n".join(json.dumps(line) for line in (start(), *lines)).encode())
