"""The store of captures: append only, each thing once; captures are read alike by one process and by several."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tests.app.judge.test_history import capture as capture_of
from tests.tables import examples
from topodiag.evidence.intake.captures import captures
from topodiag.evidence.intake.gather import gather
from topodiag.evidence.live.watch_log import WatchLog
from topodiag.fleet import workers
from topodiag.fleet.history.adding import Addition
from topodiag.fleet.history.capture import read_captures
from topodiag.fleet.history.questions import failing, histories, rising, rows_by_host
from topodiag.fleet.history.store import MANIFEST, Store, open_store, writing_to
from topodiag.model.errors import InputError
from topodiag.model.fleet import FactKind, NodeFact
from topodiag.model.history import Capture, NodeHistory, PartStates, Spell

DAY = 86400.0
START = 20000 * DAY


def facts(host: str, *, width: str = "16", driver: str = "550", errors: int = 0, falls: int = 0) -> list[NodeFact]:
    node_facts = [
        NodeFact("gpu", "gpu0", "uuid", f"GPU-{host}", FactKind.IDENTITY),
        NodeFact("pci", "gpu0", "width", width, source="lspci.txt:3"),
        NodeFact("driver", "", "NVIDIA driver", driver),
        NodeFact("os", "", "uptime", 7.5, FactKind.MOMENT, "s"),
        NodeFact("nic", "mlx5_0/1", "port_xmit_data", 12345, FactKind.COUNTER, "words of 4 bytes"),
    ]
    for n in range(4):
        node_facts.append(
            NodeFact("nic", f"mlx5_{n}/1", "symbol_error", errors if n == 0 else 0, FactKind.COUNTER, "errors")
        )
        node_facts.append(
            NodeFact("nic", f"mlx5_{n}/1", "link_downed", falls if n == 1 else 0, FactKind.COUNTER, "times")
        )
    return node_facts


def capture(host: str, day: float, held: Sequence[NodeFact], *errors: str, boot: float = START - 9 * DAY) -> Capture:
    time_s = START + day * DAY
    return Capture(f"{host}-{day}", host, time_s, boot, f"{host}-{day}.tar.gz", errors, tuple(held))


def add(folder: Path, *captures: Capture, watches: Sequence[WatchLog] = ()) -> Store:
    with writing_to(str(folder)) as store:
        addition = Addition(store)
        for each in captures:
            addition.capture(each)
        for number, log in enumerate(watches):
            addition.watch(log, f"{log.host}-{number}-{log.end_s}")
        return addition.commit()


def asked(store: Store) -> dict[str, NodeHistory]:
    everyone = lambda _: True  # noqa: E731
    return {history.host: history for history in histories(store, rows_by_host(store, everyone), everyone)}


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*.parquet")}


def test_files_are_written_once_and_the_manifest_counts_them(tmp_path: Path) -> None:
    add(tmp_path, capture("a", 0, facts("a")), capture("b", 0, facts("b")))
    before = files(tmp_path)
    add(tmp_path, capture("a", 7, facts("a", driver="570")))
    after = files(tmp_path)
    assert {name: after[name] for name in before} == before, "append only"
    manifest = json.loads((tmp_path / MANIFEST).read_text())
    assert (manifest["schema"], manifest["captures"], manifest["hosts"]) == (1, 3, 2)
    assert sorted(file["file"] for file in manifest["files"]) == sorted(after)
    assert {file["date"] for file in manifest["files"]} == {"2024-10-04", "2024-10-11"}


def test_the_same_capture_twice_adds_nothing(tmp_path: Path) -> None:
    add(tmp_path, capture("a", 0, facts("a")))
    before = files(tmp_path), (tmp_path / MANIFEST).read_bytes()
    add(tmp_path, capture("a", 0, facts("a")))
    assert (files(tmp_path), (tmp_path / MANIFEST).read_bytes()) == before


def test_facts_that_nodes_share_are_stored_once(tmp_path: Path) -> None:
    store = add(tmp_path, *(capture(f"n{n}", 0, facts(f"n{n}")) for n in range(50)))
    assert store.table("facts").num_rows == 50 + 2, "a serial each, and one row of width and driver for all"
    assert store.table("facts")["source"].to_pylist().count("lspci.txt:3") == 1


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1), (2, 1, 0)])
def test_the_order_in_which_captures_are_added_does_not_matter(tmp_path: Path, order: Sequence[int]) -> None:
    three = [
        capture("a", 0, facts("a", errors=1)), capture("a", 7, facts("a", driver="570", errors=3)),
        capture("a", 14, facts("a", width="8", driver="570", errors=9)),
    ]  # fmt: skip
    for number in order:
        store = add(tmp_path, three[number])
    history = asked(store)["a"]
    assert (history.now.id, history.before.id) == ("a-14", "a-7")
    assert [(fact.key, fact.value) for fact in history.now.facts] == [("width", "8")]
    assert [(growth.key, growth.count) for growth in history.grown if growth.count] == [("symbol_error", 8)]


def test_a_node_is_held_against_its_last_good_capture(tmp_path: Path) -> None:
    store = add(
        tmp_path, capture("a", 0, facts("a")), capture("a", 7, facts("a", width="8"), "PCI001 GPU0"),
        capture("a", 14, facts("a", width="4"), "PCI001 GPU0"),
    )  # fmt: skip
    history = asked(store)["a"]
    assert (history.before.id, history.basis) == ("a-0", "last good capture")


def test_a_node_that_was_never_good_is_held_against_the_capture_before(tmp_path: Path) -> None:
    bad = [capture("a", day, facts("a"), "PCI001 GPU0") for day in (0, 7)]
    history = asked(add(tmp_path, *bad))["a"]
    assert (history.before.id, history.basis) == ("a-0", "capture before, none was good")


def test_the_first_capture_has_nothing_before_it(tmp_path: Path) -> None:
    assert asked(add(tmp_path, capture("a", 0, facts("a"))))["a"].before is None


def test_equal_facts_are_counted_and_not_read(tmp_path: Path) -> None:
    history = asked(add(tmp_path, capture("a", 0, facts("a")), capture("a", 7, facts("a"))))["a"]
    assert (history.now.facts, history.same) == ((), 3)


@pytest.mark.parametrize(
    ("second", "why"),
    [
        (capture("a", 7, facts("a", errors=2)), "went back: reset, or another part"),
        (capture("a", 7, facts("a", errors=90), boot=START + 6 * DAY), "another boot starts anew"),
        (replace(capture("a", 7, facts("a", errors=90)), boot_s=None), "nobody knows whether it is the same boot"),
    ],
)
def test_a_counter_that_starts_anew_has_not_grown(tmp_path: Path, second: Capture, why: str) -> None:
    store = add(tmp_path, capture("a", 0, facts("a", errors=5)), second)
    assert not any(growth.count for growth in asked(store)["a"].grown), why


def test_a_counter_grows_on_after_it_was_reset(tmp_path: Path) -> None:
    counts = (5, 9, 1, 4)
    store = add(tmp_path, *(capture("a", day, facts("a", errors=count)) for day, count in enumerate(counts)))
    (growth,) = [growth for growth in asked(store)["a"].grown if growth.key == "symbol_error"]
    assert (growth.count, growth.hours, growth.now) == (4 + 3, 48.0, 4)


def test_counters_that_many_parts_share_are_no_parts_fault(tmp_path: Path) -> None:
    nodes = [capture(f"n{n}", day, facts(f"n{n}", errors=int(day), falls=int(day) if n == 3 else 0))
             for n in range(30) for day in (0, 7)]  # fmt: skip
    few, common = rising(asked(add(tmp_path, *nodes)).values())
    assert [(counter.host, counter.part, counter.key, counter.count) for counter in few] == [
        ("n3", "mlx5_1/1", "link_downed", 7)
    ]
    assert [key for key, _, _ in common] == ["symbol_error"]


def test_a_node_keeps_failing_when_three_failures_were_new(tmp_path: Path) -> None:
    def failures(host: str, *weeks: Sequence[str]) -> list[Capture]:
        return [capture(host, 7.0 * n, facts(host), *errors) for n, errors in enumerate(weeks)]

    store = add(
        tmp_path,
        *failures("lemon", ["NVL001 GPU3"], [], ["NVL001 GPU3"], [], ["PCI001 GPU5"]),
        *failures("unrepaired", ["NVL001 GPU3"], ["NVL001 GPU3"], ["NVL001 GPU3"], ["NVL001 GPU3"]),
        *failures("twice", ["NVL001 GPU3"], [], ["PCI001 GPU5"]),
        *failures("good", [], [], []),
    )
    (node_failures,) = failing(rows_by_host(store, lambda _: True))
    shown = (node_failures.host, node_failures.times, node_failures.captures, node_failures.failures[0])
    assert shown == ("lemon", 3, 3, ("NVL001 GPU3", 2))


def watched(host: str, *spells: Spell) -> WatchLog:
    return WatchLog(host, (PartStates("mlx5_0/1", spells),), end_s=max(each.end_s for each in spells))


def test_a_watch_that_is_added_again_with_more_lines_has_each_spell_once(tmp_path: Path) -> None:
    first = Spell("ACTIVE", "b", 100, 200, START + 100)
    longer = Spell("ACTIVE", "b", 100, 900, START + 100)
    add(tmp_path, watches=[watched("a", first)])
    store = add(tmp_path, watches=[watched("a", longer, Spell("DOWN", "b", 910, 950, START + 910))])
    (part,) = asked(store)["a"].states
    assert [(each.state, each.last_s) for each in part.spells] == [("ACTIVE", 900), ("DOWN", 950)]
    assert asked(store)["a"].end_s == START + 950


def test_what_a_crash_left_behind_is_none_of_the_stores(tmp_path: Path) -> None:
    add(tmp_path, capture("a", 0, facts("a")))
    stray = tmp_path / "captures" / "date=2030-01-01" / "stray.parquet"
    stray.parent.mkdir()
    stray.write_bytes(b"half of a file")
    assert list(asked(open_store(str(tmp_path)))) == ["a"]


def test_a_damaged_store_is_told_in_one_line(tmp_path: Path) -> None:
    add(tmp_path, capture("a", 0, facts("a")))
    (name,) = [name for name in files(tmp_path) if name.startswith("captures")]
    (tmp_path / name).write_bytes(b"PAR1 and nothing more")
    with pytest.raises(InputError, match="cannot be read"):
        asked(open_store(str(tmp_path)))


@examples("manifest")
def test_a_manifest_that_is_none_is_refused(tmp_path: Path, manifest: str) -> None:
    (tmp_path / MANIFEST).write_text(manifest)
    with pytest.raises(InputError):
        open_store(str(tmp_path))


def test_a_folder_with_something_else_is_not_written_to(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("")
    with pytest.raises(InputError, match="no store"), writing_to(str(tmp_path)):
        pass


def test_bytes_that_are_no_text_are_kept_as_their_escape(tmp_path: Path) -> None:
    store = add(tmp_path, capture("a", 0, [NodeFact("os", "", "kernel", "6.8\udcff")]))
    assert store.table("facts")["value"].to_pylist() == ["6.8\\udcff"]


def test_a_store_whose_name_is_no_text_is_read(tmp_path: Path) -> None:
    place = Path(f"{tmp_path}/\udcff store")
    add(place, capture("a", 0, [NodeFact("os", "", "kernel", "6.8")]))
    assert open_store(str(place)).table("facts")["value"].to_pylist() == ["6.8"]


def test_the_captures_are_the_same_for_any_number_of_workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for day in (1, 2, 3):
        capture_of(tmp_path / f"{day}", "gpu07", f"2026-03-0{day}T08:00:00Z", base="no-gpu")
    intake = gather([str(tmp_path)])
    places = captures(intake).captures
    alone = list(read_captures(places, intake))
    monkeypatch.setattr(workers, "FEW", 1)
    monkeypatch.setattr(workers, "CHUNK", 1)
    monkeypatch.setattr(workers, "cpus", lambda: 2)
    assert list(read_captures(places, intake)) == alone
    assert [each.host for each in alone if not isinstance(each, str)] == ["gpu07"] * 3


def test_a_capture_that_cannot_be_read_is_said_and_the_others_are_read(tmp_path: Path) -> None:
    for day in (1, 2):
        capture_of(tmp_path / f"{day}", "gpu07", f"2026-03-0{day}T08:00:00Z", base="no-gpu")
    intake = gather([str(tmp_path)])
    places = captures(intake).captures
    for path in (tmp_path / "1").rglob("*"):
        if path.is_file():
            path.unlink()
    first, second = read_captures(places, intake)
    assert isinstance(first, str)
    assert not isinstance(second, str)
