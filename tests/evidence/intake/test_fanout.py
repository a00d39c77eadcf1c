"""One text with the output of several hosts: each host has its own lines, at their numbers, whoever wrote them down."""

import io
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.files import filed
from tests.tables import examples, texts
from topodiag.api import diagnose
from topodiag.evidence.intake.fanout import parts_of
from topodiag.evidence.intake.gather import gather
from topodiag.evidence.kinds import Kind

TEXTS = texts(__file__)
PORT = TEXTS["port"]
OWN = {f"gpu-0{at}": PORT.format(at, 200 if at == 3 else 400) for at in range(1, 5)}
FORMS = {
    "pdsh": "\n".join(f"{host}: {line}" for host, text in OWN.items() for line in text.split("\n")),
    "pdsh, mixed": "\n".join(f"{host}: {text.splitlines()[at]}" for at in range(9) for host, text in OWN.items())
    + "\npdsh@login: gpu-09: ssh exited with exit code 255\n",
    "dshbak": "\n".join(f"----------------\n{host}\n----------------\n{text}" for host, text in OWN.items()),
    "ansible": "\n".join(f"{host} | CHANGED | rc=0 >>\n{text}\n" for host, text in OWN.items()),
    "pssh": "\n".join(f"[{at}] 10:32:11 [SUCCESS] {host}\n{text}" for at, (host, text) in enumerate(OWN.items(), 1)),
    "loop": "\n".join(f"=== {host} ===\n{text}" for host, text in OWN.items()),
    "salt": "\n".join(f"{host}:\n    " + text.replace("\n", "\n    ") for host, text in OWN.items()),
}


@pytest.mark.parametrize("form", FORMS)
def test_each_host_has_its_own_lines(form: str) -> None:
    parts = parts_of(FORMS[form])
    assert {host: [line for line in text.split("\n") if line] for host, text in parts.items()} == {
        host: text.split("\n") for host, text in OWN.items()
    }


@pytest.mark.parametrize("form", FORMS)
def test_the_port_of_one_host_that_is_slower_is_found_by_its_siblings(tmp_path: Path, form: str) -> None:
    path = filed(tmp_path, "out.txt", FORMS[form])
    document = json.loads(diagnose(path).to_json())
    [finding] = document["findings"]
    assert (finding["id"], finding["where"]["nodes"]) == ("NIC002", ["gpu-03"])
    [line] = finding["evidence"]
    assert line["source"] == f"{path}/gpu-03"
    if form != "ansible -o":  # whose lines have no numbers of their own
        assert "Rate: 200" in FORMS[form].split("\n")[line["line"] - 1]


def test_standard_input_is_cut_as_well() -> None:
    pieces = gather(["-"], stdin=io.BytesIO(FORMS["loop"].encode())).pieces
    assert [(piece.name, piece.host) for piece in pieces] == [(f"<stdin>/{host}", host) for host in OWN]


def test_hosts_that_print_the_same_are_named_as_a_set() -> None:
    rule = "-" * 15
    text = f"{rule}\ngpu-[01-03,07] (4)\n{rule}\n{PORT}\n{rule}\ngpu-09\n{rule}\n{PORT}x"
    assert list(parts_of(text)) == ["gpu-01", "gpu-02", "gpu-03", "gpu-07", "gpu-09"]


def test_a_host_that_printed_nothing_of_use_is_named_aside(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    path.write_text(FORMS["ansible"] + "gpu-05 | FAILED | rc=127 >>\nbash: ibstat: command not found\n")
    intake = gather([str(path)])
    assert [piece.host for piece in intake.pieces] == list(OWN)
    assert [file.path for file in intake.aside] == [f"{path}/gpu-05"]


@examples("text")
def test_texts_of_one_machine_and_tables_stay_whole(text: str) -> None:
    assert parts_of(text) == {}


def test_the_log_of_a_job_stays_whole(tmp_path: Path) -> None:
    line = "{0}: {0}:4242:4242 [0] NCCL INFO Bootstrap : Using eth0:10.0.0.{1}<0>\n"
    path = filed(tmp_path, "job.log", "".join(line.format(f"gpu-0{at}", at) for at in (1, 1, 2, 2)))
    [piece] = gather([str(path)]).pieces
    assert (piece.kind, piece.member) == (Kind.NCCL_LOG, "")


@given(
    st.lists(
        st.tuples(st.sampled_from(["gpu-01", "gpu-02", "n7"]), st.text(st.characters(exclude_categories=["Cc", "Zs"]))),
        max_size=20,
    )
)
def test_no_line_is_lost_and_none_is_of_two_hosts(lines: list[tuple[str, str]]) -> None:
    text = "\n".join(f"{host}: {words}" for host, words in lines)
    for host, own in parts_of(text).items():
        held = own.split("\n")
        assert all(words == (lines[at][1] if lines[at][0] == host else "") for at, words in enumerate(held))
