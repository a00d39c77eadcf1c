"""JOB006 and JOB001 by NCCL's RAS, and a rank that is gone without a word."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.checks import jobs
from tests.checks.wanted import Wanted, expect, shown
from tests.evidence.live.test_ras import status
from tests.files import laid
from tests.tables import examples, texts, with_texts
from topodiag.api import diagnose
from topodiag.checks.job.hang.check import RankBehind
from topodiag.checks.job.start.init import InitNotFinished
from topodiag.model.connections import no_connections
from topodiag.model.finding import Finding, Severity, Status
from topodiag.model.job import Job
from topodiag.model.ras import RasAnswer, RasCommunicator, RasEvent, RasMember, RasProcess

HASH = 0x27A079B828FF1A75


def member(rank: int, count: int, state: str = "RUNNING", *, missing: bool = False, **counts: int) -> RasMember:
    known = RasProcess(f"10.0.0.{1 + rank // 4}", 100 + rank, str(rank % 4))
    table = {} if missing else {"AllReduce": count, **counts}
    return RasMember(rank, known, state, table, missing, origin=jobs.origin(f"Rank {rank}"))


def answer(members: list[RasMember], at: float, **parts: object) -> RasAnswer:
    counts: dict[str, dict[int, int]] = {}
    states: dict[str, int] = {}
    for ras_member in members:
        if ras_member.state:
            states[ras_member.state] = states.get(ras_member.state, 0) + 1
        for name, count in ras_member.counts.items():
            counts.setdefault(name, {})[count] = counts.get(name, {}).get(count, 0) + 1
    comm = RasCommunicator(HASH, len(members), tuple(members), counts, states, jobs.origin("#0-0"))
    ras_answer = RasAnswer("ras", "2.29.7", at, "json", 2, len(members), 1, (comm,), origin=jobs.origin("NCCL version"))
    return replace(ras_answer, **parts)  # type: ignore[arg-type]


def counts(by_rank: Mapping[int, int], at: float) -> RasAnswer:
    return answer([member(rank, by_rank.get(rank, 50)) for rank in range(8)], at)


def job(*answers: RasAnswer) -> Job:
    return Job("RAS", 8, (), (), (), no_connections(), (), ras=answers)


def found_by(run: Job) -> tuple[Finding, ...]:
    return RankBehind().judge(run).findings


def answered(at: float, asked: Mapping[str, Any]) -> RasAnswer:
    """Of 8 ranks that launched 50, but for these; where processes are silent or dead, rank 6 is missing."""
    gone = {
        name: tuple(member(rank, 0).process for rank in asked[name]) for name in ("silent", "dead") if name in asked
    }
    members = [
        member(
            rank,
            asked.get("counts", {}).get(str(rank), asked.get("others", 50)),
            "" if gone and rank == 6 else asked.get("states", {}).get(str(rank), asked.get("state", "RUNNING")),
            missing=bool(gone) and rank == 6,
            **({"AllGather": asked["gathers"].get(str(rank), 7)} if "gathers" in asked else {}),
        )
        for rank in range(8)
    ]
    return answer(members, at, **gone)


@examples("answers", "wanted")
def test_answers_of_ras(answers: list[dict[str, Any]], wanted: Wanted) -> None:
    """Of one job, 20 seconds apart."""
    run = job(*(answered(20.0 * number, asked) for number, asked in enumerate(answers)))
    assert shown(RankBehind().judge(run), wanted) == wanted


def test_a_mismatch_of_halves_of_which_ras_lists_nobody_is_told() -> None:
    """NCCL's text lists less than half of the members."""
    whole = counts(dict.fromkeys(range(4), 49), 0)
    bare = replace(whole, communicators=(replace(whole.communicators[0], members=()),))
    (finding,) = found_by(job(bare, replace(bare, time=20.0)))
    assert (finding.severity, finding.where.ranks) == (Severity.ERROR, ())
    assert "4 ranks did not launch AllReduce number 50" in finding.message
    assert "ncclras -f json" in finding.fix[0]


def test_an_event_of_a_monitor_names_the_process() -> None:
    event = RasEvent("PEER_DEAD", 3.0, RasProcess("10.0.0.2", 106, "2"), jobs.origin("PEER_DEAD"))
    monitor = RasAnswer("m", form="monitor", events=(event,), time=3.0)
    expect(found_by(job(counts({}, 0), monitor)), nodes=("10.0.0.2",))
    recovered = RasEvent("PEER_RECOVERED", 4.0, event.process)
    assert found_by(job(counts({}, 0), replace(monitor, events=(event, recovered)))) == ()


def test_a_rank_that_its_tensor_group_waits_for_explains_the_data_groups() -> None:
    """Text lists who is not in order alone: of the tensor group the one that is late, of each data group both."""

    def late(comm: int, rank: int, host: str, pid: int, count: int) -> RasMember:
        return RasMember(rank, RasProcess(host, pid), "RUNNING", {"AllReduce": count})

    tensor = RasCommunicator(1, 4, (late(1, 2, "b", 22, 7),), {"AllReduce": {8: 3, 7: 1}})
    data = [
        RasCommunicator(
            10 + at, 2, (late(0, 0, "a", 10 + at, 5), late(0, 1, "b", 20 + at, 4)), {"AllReduce": {5: 1, 4: 1}}
        )
        for at in range(4)
    ]
    answers = [RasAnswer("ras.txt", communicators=(tensor, *data), processes=8, total=5, time=at) for at in (1.0, 9.0)]
    finding = expect(found_by(job(*answers)), observed="*late in 4 other communicators*")
    assert "process" in finding.message or "rank 2" in finding.message
    # A late process beside those of the group: it is not known who waits for whom.
    stranger = RasCommunicator(30, 2, (late(0, 0, "a", 30, 5), late(0, 1, "b", 40, 4)), {"AllReduce": {5: 1, 4: 1}})
    ras_answers = [
        RasAnswer("ras.txt", communicators=(tensor, *data, stranger), processes=10, total=6, time=at)
        for at in (1.0, 9.0)
    ]
    assert len(found_by(job(*ras_answers))) == 6


# --- A rank that is gone without a word: dead where its connections closed, not where it left, stopped or had a word
#


RAS = texts(__file__)["ras"]


def text(rank: int, form: str, size: int = 4) -> str:
    return with_texts(form, __file__).format(r=rank, p=4000 + rank, q=4700 + rank, size=size)


def told(folder: Path, logs: dict[str, str]) -> list[dict[str, Any]]:
    document = json.loads(diagnose(str(laid(folder, logs))).to_json())
    return [finding for finding in document["findings"] if finding["severity"] == "error"]


@examples("size", "head", "silent", "others", "ranks", "logs", "beside", "first", "says", "follow", "lacks")
def test_who_is_gone(
    tmp_path: Path,
    *,
    size: int | None,
    head: str | None,
    silent: str | None,
    others: str | None,
    ranks: dict[str, str] | None,
    logs: list[int] | None,
    beside: dict[str, str] | None,
    first: tuple[str, list[int]] | None,
    says: dict[str, str] | None,
    follow: str | None,
    lacks: str | None,
) -> None:
    head, others, size = head or "{init}", others or "{closed}{lost}{detected}", size or 4
    forms = {rank: head + ((silent or "") if rank == 2 else others) for rank in range(size)}
    forms |= {int(rank): form for rank, form in (ranks or {}).items()}
    files = {f"rank{rank}.log": text(rank, forms[rank], size) for rank in logs or forms}
    answer = told(tmp_path, files | {name: with_texts(form, __file__) for name, form in (beside or {}).items()})
    if first is not None:
        assert (answer[0]["id"], answer[0]["where"]["ranks"]) == first
    assert [words for name, words in (says or {}).items() if words not in answer[0][name]] == []
    if follow is not None:
        assert all(record["follows_from"] and follow in str(record["follows_from"]) for record in answer[1:])
    if lacks is not None:
        assert [record["id"] for record in answer if lacks in f"{record['id']} {record['message']}"] == []


@examples("of_it", "words", "fix", "other_fix")
def test_a_rank_that_lost_a_peer_is_not_behind_by_its_own_network(
    tmp_path: Path, of_it: str, words: str, fix: str, other_fix: str
) -> None:
    forms = {rank: "{init}" + ("" if rank == 2 else "{timed_out}{detected}") for rank in range(4)}
    forms[3] = "{init}" + of_it
    logs = {f"rank{rank}.log": text(rank, form) for rank, form in forms.items()}
    (record,) = [record for record in told(tmp_path, logs) if record["id"] == "JOB006"]
    assert record["message"].startswith(words)
    assert fix in record["fix"][0]
    assert other_fix not in record["fix"][0]


def test_answers_of_ras_alone_show_a_rank_that_is_dead(tmp_path: Path) -> None:
    document: Any = status(4, missing=2)
    for member in document["communicators"][0]["ranks"]:
        member["status"]["async_error"] = 6 if member["rank"] in (1, 3) else 0
    first, *_ = told(tmp_path, {"answer.json": json.dumps(document)})
    assert (first["id"], first["where"]["ranks"]) == ("JOB009", [2])


def test_answers_of_ras_without_an_error_leave_open_whether_a_rank_is_stopped(tmp_path: Path) -> None:
    document = json.loads(diagnose(str(laid(tmp_path, {"answer.json": json.dumps(status(4, missing=2))}))).to_json())
    assert [(finding["id"], finding["where"]["ranks"]) for finding in document["findings"]] == [("JOB006", [2])]


def test_so_does_one_answer_in_text(tmp_path: Path) -> None:
    errors = (
        "#0-0 (77) ERROR\n  Asynchronous errors on 2 ranks\n  2 ranks reported Remote process error\n"
        "  Rank 1 -- GPU 0 managed by process 4001 on node n1\n  Rank 3 -- GPU 0 managed by process 4003 on node n3\n\n"
    )
    text_of_ras = RAS.replace("INCOMPLETE\n\nErrors", "INCOMPLETE,ERROR\n\nErrors").replace(
        "Warnings\n", errors + "Warnings\n"
    )
    first, *_ = told(tmp_path, {"ras.txt": text_of_ras})
    assert (first["id"], first["where"]["ranks"]) == ("JOB009", [2])


def test_init_that_no_communicator_ends_is_told_by_two_answers() -> None:
    empty = RasAnswer("ras", "2.29.7", 0.0, "json", origin=jobs.origin("No communicator data collected!"))
    expect(InitNotFinished().judge(job(empty, replace(empty, time=20.0))), id="JOB001", severity="ERROR")
    assert InitNotFinished().judge(job(counts({}, 0))).status is Status.UNKNOWN
    assert InitNotFinished().judge(job(replace(empty, whole=False))).status is Status.UNKNOWN  # it lists nothing yet
