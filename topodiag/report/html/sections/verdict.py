"""The answer: the state in a word, the sentence, what it costs, how sure it is, and what is to be read first."""

from __future__ import annotations

from typing import Any

from topodiag.model.finding import Severity
from topodiag.model.maker import dialect_of_all
from topodiag.model.result import Result
from topodiag.model.verdict import Cause, Verdict
from topodiag.report.findings import price_words, step_words, where_words
from topodiag.report.html.interface import NAMES_ROOM, Anchors, Section, Sheet, by_host, distinct
from topodiag.report.text import answer_groups
from topodiag.report.verdict.cause import STATUS
from topodiag.report.verdict.table import SIGNS
from topodiag.report.words import KINDS, counted
from topodiag.report.words import SIGNS as MARKS
from topodiag.report.words import title_of as title_of_check
from topodiag.words.text import clean
from topodiag.words.units import fold_hosts, grouped, plural, short_hosts

_WORDS = {"✖": ("fault", "error"), "▲": ("warning", "warning"), "●": ("note", "note"), "✔": ("clean", "ok"),
          "?": ("unknown", "unknown"), "": ("", "plain")}  # fmt: skip
"""What a sign of the terminal's answer means in a word, and how it is drawn."""
GROUPS_SHOWN = 6
JOBS_SHOWN = 200


def section(sheet: Sheet) -> Section:
    """Never absent: where nothing could be judged, that is the answer."""
    verdict = sheet.result.verdict
    values: dict[str, Any] = {"facts": [], "first": [], "jobs": []}
    tally = [(KINDS[severity], words) for severity, words in counted(sheet.result.findings)]
    values |= {"action": _action(sheet), "tally": tally}
    values |= _of_case(sheet, verdict) if verdict is not None else {"answers": _of_answers(sheet)}
    return Section("verdict", "Verdict", values)


def _action(sheet: Sheet) -> str:
    """What the terminal says is to be done, "" where nothing is."""
    verdict, groups = sheet.result.verdict, answer_groups(sheet.page.answers)
    if verdict is not None:
        return next((cause.finding.fix[0] for cause in verdict.causes[:1] if cause.finding.fix), "")
    if groups:
        return groups[0][0].action
    faults = (finding for finding in sheet.result.findings if finding.severity > Severity.INFO)
    return next((fault.fix[0] for fault in faults if fault.fix), "")


def title_of(sheet: Sheet) -> str:
    """The document's title: what stands on the tab of a browser and in the list of a mail."""
    verdict = sheet.result.verdict
    if verdict is not None:
        return clean(f"{SIGNS[verdict.state][1].lower()}: {verdict.headline}", limit=160)
    first = _of_answers(sheet)[0]
    return clean(f"{first['names']}: {first['text']}".removeprefix(": "), limit=160)


def _of_case(sheet: Sheet, verdict: Verdict) -> dict[str, Any]:
    sign, word, hue = SIGNS[verdict.state]
    facts = [] if not verdict.causes else _facts(sheet, verdict.causes[0])
    others = len(verdict.causes) - 1
    if others > 0:
        checks = ", ".join(distinct(cause.finding.id for cause in verdict.causes[1:]))
        facts.append(("Also", f"{plural(others, 'more cause')}: {checks}", "#chain"))
    return {
        "answers": [_answer(verdict.headline, sign, word, hue)],
        "facts": facts,
        "first": list(verdict.first),
        "jobs": [(job, *SIGNS[job.state], distinct(verdict.causes[at].finding.id for at in job.causes))
                 for job in verdict.jobs[:JOBS_SHOWN] if len(verdict.jobs) > 1],
    }  # fmt: skip


def _answer(text: str, sign: str = "", word: str = "", hue: str = "plain", names: str = "") -> dict[str, str]:
    """One answer for the template: nodes that it is of, and how it is marked."""
    return {"sign": sign, "word": word, "hue": hue, "names": names, "text": text}


def _facts(sheet: Sheet, cause: Cause) -> list[tuple[str, str, str]]:
    """(label, words, link) of what a reader asks first of the first cause."""
    price = cause.price
    anchor = Anchors(sheet.result).of(cause.finding)
    rows = [
        ("Cause", f"{cause.finding.id}  {cause.finding.message}", f"#{anchor}" if anchor else ""),
        ("Where", where_words(cause.finding.where, True), ""),
        ("Cost", price_words(price, price.text), ""),
        ("Step", ": ".join(words for words in (step_words(price), price.step_said) if words), ""),
        ("Steps", price.step_says, ""),
        ("Measured", price.says, "#waterfall" if price.all_gone is not None else ""),
        ("Verdict", f"{STATUS[cause.status][0]}, confidence {cause.finding.confidence}", ""),
    ]
    return [row for row in rows if row[1]]


def _of_answers(sheet: Sheet) -> list[dict[str, str]]:
    """The answers that the terminal repeats in its last line: one for each kind of them, the worst first."""
    groups = answer_groups(sheet.page.answers)
    if not groups and len(sheet.result.nodes) > 1:
        return _of_nodes(sheet.result)
    answers: list[dict[str, str]] = []
    if not groups:
        lines = (line.plain.strip() for line in sheet.page.lines)
        answers.append(_answer(next(filter(None, lines), "nothing to report")))  # a command that keeps no answer
    for group in groups[:GROUPS_SHOWN]:
        word, hue = _WORDS[group[0].sign]
        sign = group[0].sign
        if not sign and len(groups) == 1 and sheet.result.worst is not None:
            sign, hue = MARKS[sheet.result.worst], KINDS[sheet.result.worst]
        word = "" if sheet.leading else word.upper()
        names = fold_hosts([answer.name for answer in group if answer.name])
        answers.append(_answer(group[0].words.plain, sign, word, hue, names))
    if len(groups) > GROUPS_SHOWN:
        rest = sum(len(group) for group in groups[GROUPS_SHOWN:])
        answers.append(_answer(f"{rest} more below"))
    return answers


def _of_nodes(result: Result) -> list[dict[str, str]]:
    """Of many nodes: those with the same worst finding together, the worst first, and how many have none."""
    findings = by_host(result)
    dialect = dialect_of_all(result)
    faulty = [node.host for node in result.nodes if node.host in findings]
    worst = {host: max(findings[host], key=lambda finding: finding.severity) for host in faulty}
    groups = grouped(((worst[host].severity, worst[host].id), host) for host in faulty)
    answers = []
    ordered = sorted(groups.items(), key=lambda item: (-item[0][0], -len(item[1])))
    for (severity, check), hosts in ordered[:GROUPS_SHOWN]:
        title = title_of_check(check, dialect)
        words = f"{plural(len(hosts), 'node')} of {len(result.nodes):,}: {check}{f', {title}' if title else ''}"
        word = KINDS[severity]
        answers.append(_answer(words, MARKS[severity], word.upper(), word, short_hosts(hosts, NAMES_ROOM)))
    if rest := len(result.nodes) - len(faulty):
        answers.append(_answer(f"{rest:,} of {len(result.nodes):,} nodes without a finding"))
    return answers
