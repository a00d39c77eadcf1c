"""The last lines of a report repeat its answer; notes are one line each."""

import io
from dataclasses import replace

from tests.report import machines
from topodiag.model.finding import Severity
from topodiag.report.interface import Style
from topodiag.report.page import print_drawn
from topodiag.report.table import draw_result
from topodiag.report.text import Page


def drawn(result, **style):
    stream = io.StringIO()
    print_drawn(draw_result, result, stream, Style(**style))
    return stream.getvalue().splitlines()


def test_the_last_two_lines_are_the_verdict_and_what_to_do():
    first, *_, verdict, action = drawn(machines.sick(), width=160)
    assert first.startswith(verdict)
    assert action.startswith("  do         ")


def test_quiet_reports_and_short_ones_repeat_nothing():
    lines = drawn(machines.sick(), quiet=True)
    assert sum(line.startswith("✖") and "error" in line for line in lines) == 1
    page = Page(Style())
    page.add("", "one line")
    page.note_answer("one line")
    page.repeat_answers()
    assert [line.plain for line in page.lines] == ["one line"]


def test_answers_alike_are_folded_the_worst_first():
    page = Page(Style(width=100))
    for number in range(11):
        page.add("", f"row {number}")
    for number in range(1, 5):
        bad = number == 3
        sign, hue, words = ("✖", "error", "1 error") if bad else ("✔", "ok", "no faults found")
        page.note_answer(words, sign=sign, hue=hue, name=f"gpu{number}")
    page.repeat_answers()
    assert page.lines[-1].plain == "✖ gpu3  1 error · ✔ gpu[1-2,4]  no faults found"


def test_a_note_is_one_line_unless_the_report_is_verbose():
    note = machines.finding(severity=Severity.INFO, message="nothing to fix", fix=("leave it",))
    made = replace(machines.sick(), findings=(note,))
    short, whole = drawn(made, width=120), drawn(made, width=120, verbose=1)
    assert [line for line in short if "nothing to fix" in line]
    assert not [line for line in short if "leave it" in line]
    assert [line for line in short if line.endswith("  (-v: in full)")]
    assert [line for line in whole if "leave it" in line]
