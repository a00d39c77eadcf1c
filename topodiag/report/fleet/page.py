"""A fleet on one screen: which nodes to leave out and why, then classes of nodes with counts, never rows of nodes. For
programs: one object, lines of JSON by node, and a table of nodes and reasons."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

from topodiag.model.finding import Confidence, Finding, Severity
from topodiag.model.fleet import Cohort, Exclusion, FleetResult, SharedFact, fact_name, spelled
from topodiag.report.documents.from_model import Document, document_of, from_model, plain
from topodiag.report.table_files import Row
from topodiag.report.text import Page
from topodiag.report.words import SIGNS, title_of, unexplained_words
from topodiag.words.own_data import own_data
from topodiag.words.units import few, fold_hosts, fold_labels, grouped, in_gbs, percent, plural, short_hosts

OLDER = "an older capture of"
"""How it begins why a capture was left out that another one of the same node replaces."""
WIDESPREAD, WIDESPREAD_NODES = 0.25, 3
"""Share of the nodes of a kind, and their number, from which the same reason is likely to have one cause."""
GROUPS_SHOWN = 10
"""Groups of nodes with the same reasons that are shown one by one; more of them are told by class."""
CLASSES_SHOWN = 12
WHYS_SHOWN = 4
"""Reasons for which captures were left out that are shown."""
COHORTS_SHOWN = 4
FACTS_SHOWN = 8
SPLITS_SHOWN = 3
COLUMNS: Mapping[str, type | str] = {
    "host": str, "cohort": "int32", "verdict": str, "check": str, "severity": str, "message": str, "gbs_lost": float,
    "path": str, "time": str,
}  # fmt: skip
"""Of the table of nodes and findings, each with its type."""
_NAMES = 48
"""Columns of a node set, of which the beginning is shown."""
_TELLING = tuple(tuple(fact.split(": ")) for fact in own_data("fleet/families")["telling"])
"""The facts that people ask for first when they ask whether a fleet is homogeneous."""


def draw_fleet(page: Page, result: FleetResult) -> None:
    """The answer, its reasons, the cohorts, and what all nodes have in common. The last line repeats the answer."""
    _draw_answer(page, result)
    _draw_exclusions(page, result.exclusions)
    _draw_widespread(page, result)
    cohorts = page.some(result.cohorts, COHORTS_SHOWN)
    for cohort in cohorts:
        _draw_cohort(page, cohort)
    rest = result.cohorts[len(cohorts) :]
    nodes = sum(len(cohort.nodes) for cohort in rest)
    page.add_more(len(rest), f"kind of node, {nodes} nodes", f"kinds of nodes, {nodes} nodes")
    _draw_rest(page, result)
    _draw_left_out(page, result)


def _draw_answer(page: Page, result: FleetResult) -> None:
    out, total, names = len(result.failed), len(result.nodes), ""
    if out:
        worst = max(exclusion.severity for exclusion in result.exclusions)
        words = f"{out} of {plural(total, 'node')} to exclude now"
        sign, hue = SIGNS[worst], str(worst)
        names = f"  {short_hosts(result.failed, page.width - len(words) - 4)}"
    else:
        unjudged = total - sum(len(cohort.nodes) for cohort in result.cohorts if cohort.compared)
        unread = sum(not gap.why.startswith(OLDER) for gap in result.left_out)
        words = f"no node of {total} to exclude"
        if unjudged:
            words += f"; {plural(unjudged, 'node')} {'has' if unjudged == 1 else 'have'} no peers to compare with"
        if unread:
            words += f", {plural(unread, 'capture')} not read"
        if unjudged or unread or result.unexplained or result.shared_names:
            sign, hue = "?", "unknown"
        else:
            sign, hue = ("▲", "warning") if result.worst == Severity.WARNING else ("✔", "ok")
    action = _action(result)
    page.add(page.text((sign, hue), " "), (words, "strong"), (names, "name"))
    page.note_answer((words, "strong"), (names, "name"), sign=sign, hue=hue, action=action)
    page.entry("do", (action, "strong"), hue="ok")


def _action(result: FleetResult) -> str:
    """The first step of the fix of the worst reason to exclude a node, with the node where there are others; "" where
    none is to be excluded."""
    reasons = [(check, exclusion.nodes) for exclusion in result.exclusions for check, _ in exclusion.reasons]
    of_reason = ((finding, check, nodes) for check, nodes in reasons for finding in result.findings)
    for finding, check, nodes in of_reason:
        if finding.id == check and finding.fix and {*nodes} & {*finding.where.nodes}:
            return finding.fix[0] if {*nodes} == {*result.failed} else f"{short_hosts(nodes, _NAMES)}: {finding.fix[0]}"
    return ""


def _draw_exclusions(page: Page, exclusions: Sequence[Exclusion]) -> None:
    if len(exclusions) <= GROUPS_SHOWN or page.style.verbose:
        for exclusion in exclusions:
            _draw_exclusion(page, exclusion)
        return
    classes = grouped((_class_of(*exclusion.reasons[0]), exclusion) for exclusion in exclusions)
    ordered = sorted(classes.items(), key=lambda item: (-max(e.severity for e in item[1]), -_nodes(item[1]), item[0]))
    for name, own in ordered[:CLASSES_SHOWN]:
        worst = max(exclusion.severity for exclusion in own)
        lead = page.text("  ", (SIGNS[worst], str(worst)), " ", (plural(_nodes(own), "node"), "strong"), "  ")
        if len(own) == 1:
            name = "  ".join(own[0].reasons[0])
        names = short_hosts([host for exclusion in own for host in exclusion.nodes], page.width // 4)
        page.add_line(page.text(lead, (names, "name"), "  ", name))
    left = plural(sum(_nodes(own) for _, own in ordered[CLASSES_SHOWN:]), "node")
    page.add_more(len(ordered) - CLASSES_SHOWN, f"class, {left}", f"classes, {left}", indent="    ")
    page.add("    ", ("each node with its reasons: -v", "dim"))


def _draw_exclusion(page: Page, exclusion: Exclusion) -> None:
    """The nodes and their worst reason on a line; the others are counted."""
    verbose, hue = page.style.verbose, str(exclusion.severity)
    who = fold_hosts(exclusion.nodes) if verbose else short_hosts(exclusion.nodes, _NAMES)
    (check, message), *rest = exclusion.reasons
    also = f" ({in_gbs(exclusion.gbs_lost)} lost)" if exclusion.gbs_lost else ""
    also += f" (and {plural(len(rest), 'more reason')})" if rest and not verbose else ""
    page.add(
        page.text("  ", (SIGNS[exclusion.severity], hue), " "), (who, "strong"), "  ", (check, hue), f"  {message}",
        (also, "dim"), under=" " * 6,
    )  # fmt: skip
    for check, message in rest if verbose else ():
        page.add(page.text("      ", (check, hue), "  "), message)


def _draw_widespread(page: Page, result: FleetResult) -> None:
    """A reason that many nodes of a kind share is rather one cause for all of them than a fault of each. Nodes that
    hung before they told their kind are many only beside the whole fleet."""
    for cohort in result.cohorts:
        own, traits = set(cohort.nodes), dict(cohort.traits)
        known = bool(traits.get("product") or traits.get("GPU"))
        among = len(own if known else result.nodes)
        kind = " of one kind" if known else ""
        hit: dict[str, set[str]] = {}
        for exclusion in result.exclusions:
            for check, _ in exclusion.reasons:
                hit.setdefault(check, set()).update(own.intersection(exclusion.nodes))
        for nodes, checks in grouped((frozenset(hosts), check) for check, hosts in hit.items()).items():
            if len(nodes) >= WIDESPREAD_NODES and len(nodes) >= WIDESPREAD * among:
                words = f"{', '.join(checks)} on {len(nodes)} of {plural(among, 'node')}{kind}"
                page.add(
                    page.text("  ", ("? ", "doubtful")), (words, "strong"),
                    ": look first for one cause that they share (image, driver, file system, switch)", under=" " * 4,
                )  # fmt: skip


def _nodes(exclusions: Sequence[Exclusion]) -> int:
    return sum(len(exclusion.nodes) for exclusion in exclusions)


def _class_of(check: str, message: str) -> str:
    """The kind of reason, without the part and the value."""
    if check == "FLT001":
        return f"{check}  {message.partition(':')[0].partition(' of ')[0]} unlike the peers"
    return f"{check}  {title_of(check)}".rstrip()


def _draw_cohort(page: Page, cohort: Cohort) -> None:
    page.blank()
    count = plural(len(cohort.nodes), "node")
    page.add(page.text((count, "strong"), "  "), (cohort.name or "of no known kind", "name"))
    if not cohort.compared:
        page.add("  ", (f"too few to compare: {short_hosts(cohort.nodes, _NAMES)}", "dim"))
        return
    _draw_same(page, cohort)
    for split in page.listed(cohort.populations, SPLITS_SHOWN, "split", indent=" " * 15):
        names = ", ".join(dict.fromkeys(key for _, key, _ in split.facts[:SPLITS_SHOWN]))
        rest = len(split.facts) - SPLITS_SHOWN
        names += f" and {plural(rest, 'more fact')}" if rest > 0 else ""
        page.add(page.text("  ", ("populations  ", "warning")), names)
        for group in split.groups:
            page.add_line(page.text(" " * 15, f"{len(group.nodes)}: {', '.join(group.values[:SPLITS_SHOWN])}"))
        if split.association is not None:
            association = split.association
            values = fold_labels(association.values, 4)
            words = f"split as by {association.attribute}: {values} ({percent(association.jaccard)} overlap)"
            page.add(" " * 15, (words, "dim"))
    if cohort.varying:
        keys = few(list(dict.fromkeys(key for _, key in cohort.varying)))
        page.add(page.text("  ", ("varying      ", "dim")), (keys, "dim"))


def _draw_same(page: Page, cohort: Cohort) -> None:
    """How much is equal, and the facts that are asked for first."""
    split = {(outlier.family, outlier.key) for outlier in cohort.outliers}
    split |= {(family, key) for population in cohort.populations for family, key, _ in population.facts}
    whole = [e for e in cohort.same if e.known == len(cohort.nodes) and (e.family, e.key) not in split]
    facts = sum(len(value.parts) for value in cohort.same)
    lead = f"{facts} of {plural(cohort.compared, 'fact')} equal on all nodes that show them"
    page.add(page.text("  ", ("equal        ", "ok")), lead)
    known = {(value.family, value.key): value for value in whole}
    telling = [known[at] for at in _TELLING if at in known]
    chosen = whole if page.style.verbose else [value for value in telling if len(value.values) == 1][:FACTS_SHOWN]
    page.add_items(" " * 15, [_same_words(value) for value in chosen])


def _same_words(fact: SharedFact) -> str:
    values = [spelled(value, fact.unit) for value in fact.values]
    words = ", ".join(values[:2]) + (f", ... ({len(values)} values by part)" if len(values) > 2 else "")
    many = f" x{len(fact.parts)}" if len(fact.parts) > 1 else ""
    return f"{fact_name(fact.family, fact.key)} {words}{many}"


def _draw_rest(page: Page, result: FleetResult) -> None:
    """Findings that exclude no node: one line for each, with the number of nodes; the most widespread first."""
    out = {reason for exclusion in result.exclusions for reason in exclusion.reasons}
    rest = [
        finding
        for finding in result.findings
        if (finding.id, finding.message) not in out
        and finding.id != "FLT002"
        and (finding.severity > Severity.INFO or _hint(finding))
    ]
    notes = sum(finding.severity is Severity.INFO and not _hint(finding) for finding in result.findings)
    if not rest and not notes:
        return
    page.blank()
    ordered = sorted(rest, key=lambda one: (-one.severity, -len(one.where.nodes), one.id, one.message))
    for finding in page.listed(ordered, CLASSES_SHOWN, "finding"):
        _draw_finding(page, finding)
    if notes:
        words = f"{plural(notes, 'note')} on differences that cost nothing by themselves: --format json"
        page.add("  ", (words, "dim"))


def _hint(finding: Finding) -> bool:
    """Whether a difference may matter, and the siblings are too few to say so."""
    return finding.id == "FLT001" and finding.confidence is Confidence.LOW


def _draw_finding(page: Page, finding: Finding) -> None:
    hue = str(finding.severity)
    count = plural(len(finding.where.nodes), "node")
    who = short_hosts(finding.where.nodes, _NAMES) if len(finding.where.nodes) <= GROUPS_SHOWN else ""
    page.add(
        page.text("  ", (SIGNS[finding.severity], hue), " ", (finding.id, hue), "  "),
        (f"{count}  ", "strong"), finding.message, (f"  {who}" if who else "", "dim"),
    )  # fmt: skip


def _draw_left_out(page: Page, result: FleetResult) -> None:
    if result.shared_names:
        page.blank()
        names = short_hosts(result.shared_names, _NAMES)
        count = plural(len(result.shared_names), "name")
        page.add(
            ("? ", "doubtful"), (f"{count} of several machines each", "strong"),
            f"  {names}: they have no GPU in common. If two clusters lie together, compare each by itself: the lists"
            " name such a node once", under="  ",
        )  # fmt: skip
    if result.unexplained:
        page.blank()
        page.add(("? ", "doubtful"), f"{unexplained_words(result.unexplained)}: --format json")
    newer = "another capture of the same node is newer"
    by_why = grouped((newer if gap.why.startswith(OLDER) else gap.why, gap.what) for gap in result.left_out)
    if by_why:
        page.heading(f"{plural(len(result.left_out), 'capture')} left out", lead=("? ", "doubtful"))
    for why, (first, *rest) in page.listed(list(by_why.items()), WHYS_SHOWN, "reason"):
        names = ", ".join([first, *rest]) if page.style.verbose or not rest else f"{first} and {len(rest)} more"
        page.add(page.text("  ", (names, "strong"), "  "), why, under=" " * 4)


def fleet_json(result: FleetResult) -> Document:
    return document_of("fleet.FleetDocument", result, nodes=_documents(result), not_observed=result.left_out)


def _documents(result: FleetResult) -> Iterator[Document]:
    reasons = {host: exclusion.reasons for exclusion in result.exclusions for host in exclusion.nodes}
    for node in result.nodes:
        verdict = "fail" if node.host in reasons else "pass"
        yield from_model("fleet.FleetNode", node, verdict=verdict, reasons=reasons.get(node.host, ()))


def json_lines(result: FleetResult) -> Iterator[str]:
    """One object a line: each node with its verdict and its reasons."""
    return (json.dumps(plain(node), ensure_ascii=True, allow_nan=False) for node in _documents(result))


def rows(result: FleetResult) -> Iterator[Row]:
    """One row for each node and finding of it, one for a node without any; the columns are COLUMNS."""
    findings = grouped((host, finding) for finding in result.findings for host in finding.where.nodes)
    failed = set(result.failed)
    for node in result.nodes:
        lead = (node.host, node.cohort, "fail" if node.host in failed else "pass")
        for one in findings.get(node.host, ()):
            yield (*lead, one.id, str(one.severity), one.message, one.cost.gbs_lost, node.path, node.time)
        if node.host not in findings:
            yield (*lead, "", "", "", None, node.path, node.time)
