"""The terminal report of jobs: verdict and summary of each, and the views that were asked for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from topodiag.model.finding import Finding
from topodiag.model.job import Hca, Job
from topodiag.model.job_rings import is_net, uses_gdr
from topodiag.model.ras import answered, says_answers
from topodiag.model.result import Result
from topodiag.model.step_pace import says_steps
from topodiag.report.findings import draw_findings
from topodiag.report.gaps import draw_gaps, draw_unreadable
from topodiag.report.grid import draw_listed
from topodiag.report.job.comms import FAMILIES, families
from topodiag.report.job.registry import VIEWS, View
from topodiag.report.job.words import median, seconds, spell_hosts
from topodiag.report.node.header import draw_verdict
from topodiag.report.places import Places
from topodiag.report.text import Page, Part, more
from topodiag.report.words import judged
from topodiag.words.units import few, fold_labels, number, plural

JOBS_SHOWN = 8
FAMILIES_SHOWN = 12


def draw_logs(page: Page, result: Result, views: Sequence[str] = ()) -> None:
    """What a person reads of logs. With views, these stand in the place of summary, findings and gaps."""
    draw_unreadable(page, result)
    if not result.jobs:
        page.add(page.text(("?", "unknown"), " "), ("no job was found in the logs", "unknown"))
    if views:
        _draw_views(page, result, [VIEWS[name] for name in views])
    else:
        summary, gaps = Page(page.style), Page(page.style)
        draw_jobs(page, result, summary if len(result.jobs) == 1 else page)
        draw_findings(page, result.findings, several_nodes=True, places=Places(result))
        if not page.style.quiet:
            draw_gaps(gaps, result)
            first, last = (gaps, summary) if result.findings else (summary, gaps)
            first.lines += last.lines
            page.add_rest(first)
        page.repeat_answers()


def _draw_views(page: Page, result: Result, views: Sequence[View]) -> None:
    for job in result.jobs:
        for view in views:
            if view.title:
                page.blank()
                page.add((job.name or "job", "strong"), (f"  {view.title}", "dim"))
                view.draw(page, job)
    for view in views:
        if not view.title:
            view.draw(page, result)


def draw_jobs(page: Page, result: Result, summaries: Page) -> None:
    """Head and summary of each job; of one job the summary stands where the screen has room for it."""
    shown = page.some(result.jobs, JOBS_SHOWN)
    for job in shown:
        page.blank()
        draw_job_head(page, result, job)
        if not page.style.quiet:
            draw_summary(summaries, job)
    if len(result.jobs) > len(shown):
        page.blank()
        page.add("", (more(len(result.jobs) - len(shown), "job"), "dim"))


def draw_job_head(page: Page, result: Result, job: Job) -> None:
    """The verdict and where the job ran."""
    findings, tally, troubles = _findings_of_job(result, job), judged(result, job.name), result.troubles(job.name)
    asked = says_answers(job.ras) if job.only_ras else ""
    draw_verdict(page, job.name or "job", findings, tally, what="logged", why_none=asked, troubles=troubles)
    page.add_items("  ", places_of(job))
    if not page.style.quiet:
        page.add_items("  ", [(word, "dim") for word in software_of(job)])


def _findings_of_job(result: Result, job: Job) -> tuple[Finding, ...]:
    """What the checks found in this job; all of them where there is one job."""
    if len(result.jobs) == 1:
        return result.findings
    return tuple(finding for outcome in result.outcomes if outcome.node == job.name for finding in outcome.findings)


def draw_summary(page: Page, job: Job) -> None:
    """Network, init and communicators."""
    for label, words in summary_of(job, verbose=bool(page.style.verbose)).items():
        page.entry(label, words, most=1)
    for note in job.notes:
        page.entry("note", note)
    if job.communicators:
        page.blank()
        draw_listed(page, FAMILIES, families(job), FAMILIES_SHOWN, "kind of communicator", "kinds of communicators")


def summary_of(job: Job, *, verbose: bool) -> dict[str, str]:
    """What it runs over and with, by the label of each line; "" for what the log does not say."""
    return {
        "network": _network(job),
        "init": _init(job) if verbose else "",
        "settings": _settings(job, verbose=verbose),
        "steps": "; ".join(says_steps(job.paces)),
    }


def places_of(job: Job) -> list[Part]:
    """Its ranks and where they ran."""
    pieces: list[Part] = []
    seen = len(job.ranks)
    asked = answered(job.ras) if not seen else None
    if job.world_size > 0:
        pieces.append((plural(job.world_size, "rank"), "strong"))
        if asked is not None:
            who, hue = ("all", "") if asked[0] == asked[1] else (asked[0], "doubtful")
            pieces.append((f"{who} of them answered RAS", hue))
        elif seen < job.world_size:
            pieces.append((f"{seen} of them seen", "doubtful"))
    elif seen:
        pieces.append((plural(seen, "rank") + " seen", "strong"))
    if job.hosts:
        pieces.append(f"{plural(len(job.hosts), 'node')}: {spell_hosts(job.hosts)}")
    per_host = Counter(rank.host for rank in job.ranks)
    counts = sorted(set(per_host.values()))
    if len(per_host) > 1 and counts:
        least, most = counts[0], counts[-1]
        pieces.append(f"{plural(least, 'rank')} each" if least == most else f"{least} to {most} ranks each")
    if job.unplaced:
        pieces.append((f"{plural(len(job.unplaced), 'process', 'processes')} without a rank", "doubtful"))
    return pieces or ["no rank was named"]


def software_of(job: Job) -> list[str]:
    """The versions of the libraries, and how many files say so."""
    words = [f"{job.library} {version}" for version in job.nccl_versions]
    for key, label in (("driver", "CUDA driver"), ("net plugin", "net plugin"), ("ofi", "OFI"), ("rccl", "RCCL")):
        values = Counter(process.versions[key] for process in job.processes if process.versions.get(key))
        words += [f"{label} {spell_driver(value) if key == 'driver' else value}" for value, _ in values.most_common(2)]
    words.append(plural(len(job.files), "file") if job.files else "")
    return [word for word in words if word]


def spell_driver(version: str) -> str:
    """`12040` of cudaDriverGetVersion as `12.4`."""
    plain = version.isascii() and version.isdigit() and 4 <= len(version) <= 6
    return f"{int(version) // 1000}.{int(version) % 1000 // 10}" if plain else version


def _network(job: Job) -> str:
    kinds = Counter(process.network for process in job.processes if process.network)
    if not kinds:
        return ""
    parts = [
        kind if len(kinds) == 1 else f"{kind} ({plural(count, 'process', 'processes')})"
        for kind, count in kinds.most_common(3)
    ]
    parts += _hca_sets(job)
    parts.append(_gdr(job))
    interfaces = Counter(process.bootstrap.split(":", 1)[0] for process in job.processes if process.bootstrap)
    if interfaces:
        parts.append(f"bootstrap over {', '.join(name for name, _ in interfaces.most_common(3))}")
    return " · ".join(part for part in parts if part)


def _hca_sets(job: Job) -> list[str]:
    """The devices that most processes list, and how many others there are."""
    sets = Counter(tuple((hca.name, hca.port) for hca in process.hcas) for process in job.processes if process.hcas)
    if not sets:
        return []
    common = sets.most_common(1)[0][0]
    hcas = next(p.hcas for p in job.processes if tuple((h.name, h.port) for h in p.hcas) == common)
    others = f"{plural(len(sets) - 1, 'other set')} on other processes"
    return [_hcas(hcas), *([others] if len(sets) > 1 else [])]


def _hcas(hcas: Sequence[Hca]) -> str:
    names = fold_labels(list(dict.fromkeys(hca.name for hca in hcas)))
    rates = sorted({hca.speed_mbps / 1000 for hca in hcas if hca.speed_mbps})
    at = " at " + "–".join(number(rate) for rate in rates[:1] + rates[1:][-1:]) + " Gb/s" if rates else ""
    return f"{plural(len(hcas), 'device')} ({names}){at}"


def _gdr(job: Job) -> str:
    labels = {label for comm in job.communicators for label in comm.transports if is_net(label)}
    states = [uses_gdr(label) for label in labels if not label.startswith("NET/Socket")]
    if all(process.network == "Socket" for process in job.processes if process.network):
        return ""  # sockets have none
    if states:
        return "GPUDirect RDMA " + ("on" if all(states) else "off" if not any(states) else "on in part")
    claims = {hca.gdr for process in job.processes for hca in process.hcas if hca.gdr is not None}
    return "" if len(claims) != 1 else f"GPUDirect RDMA {'on' if claims.pop() else 'off'} for the devices"


def _init(job: Job) -> str:
    """The world's init: its median, its slowest rank and what that one waited for."""
    world = next((comm for comm in job.communicators if np.isfinite(comm.init_s).any()), None)
    if world is None:
        return ""
    slowest = int(np.nanargmax(world.init_s))
    rank = int(world.ranks[slowest]) if slowest < len(world.ranks) else -1
    words = f"median {seconds(median(world.init_s))}, slowest rank {rank if rank >= 0 else slowest} "
    words += seconds(float(world.init_s[slowest]))
    phases = {
        name: float(values[slowest])
        for name, values in world.phases_s.items()
        if slowest < len(values) and np.isfinite(values[slowest])
    }
    if phases:
        longest = max(phases, key=lambda name: phases[name])
        words += f", most of it in {longest} ({seconds(phases[longest])})"
    return words


def _settings(job: Job, *, verbose: bool) -> str:
    """The variables that were set, those first that change what NCCL does."""
    lines = []
    for name, values in sorted(job.settings().items()):
        if name.startswith("NCCL_DEBUG") and not verbose:
            continue
        value = next(iter(values)) if len(values) == 1 else f"<{len(values)} values>"
        lines.append(f"{name}={value if len(value) <= 40 else value[:39] + '…'}")
    return few(lines, len(lines) if verbose else 6, " ")
