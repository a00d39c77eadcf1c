"""A rank that is gone without a word: dead where its connections closed, not where it left, stopped or had a word."""

import json
from pathlib import Path
from typing import Any

from tests.evidence.live.test_ras import status
from tests.files import laid
from tests.tables import examples, texts, with_texts
from topodiag.api import diagnose

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
