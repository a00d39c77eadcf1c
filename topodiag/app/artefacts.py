"""`topodiag diagnose --to DIR`: the files that apply the fixes of a verdict, for causes that have one, and how to
check each. It decides nothing: each file is the one that `topodiag emit` or `topodiag place` would write.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from topodiag.app.case.topology import Topology
from topodiag.app.judge.conf_file import conf_of
from topodiag.app.judge.topo_file import by_evidence, make_topo_file
from topodiag.lazy import dataclass
from topodiag.model.errors import TopodiagError
from topodiag.model.nccl_versions import DEFAULT_VERSION
from topodiag.model.result import Result
from topodiag.model.verdict import Cause
from topodiag.nccl.topo.detect import LackingError, tree_of
from topodiag.verdict.headline import cause_words
from topodiag.words.text import clean
from topodiag.words.units import fold_hosts
from topodiag.writing import check_new_folder, replacing

CHECKS = "CHECKS.txt"
MAX_HOSTS = 64
"""Topology files that are written of one cause: one for each host."""


@dataclass(frozen=True, slots=True)
class Artefact:
    """A file that applies a fix of a cause. `apply` is how it is used, `check` what shows that it did its work. `why`
    says why it could not be made: all else is "" then."""

    cause: Cause
    name: str = ""
    text: str = ""
    apply: str = ""
    check: str = ""
    why: str = ""


def artefacts(result: Result, paths: Sequence[str]) -> list[Artefact]:
    """The files of a verdict's causes, in the order of the causes. `paths` is the evidence that was given. Never raises
    for what a case holds: what cannot be made says why."""
    assert result.verdict is not None  # noqa: S101 - only a diagnosis has files
    listed: list[Artefact] = []
    for cause in result.verdict.causes:
        maker = next((make for starts, make in _MAKERS if cause.finding.id.startswith(starts)), None)
        if maker is None and not cause.finding.settings:
            continue
        try:
            listed += (maker or _conf)(cause, result, paths)
        except (TopodiagError, LackingError) as error:
            listed.append(Artefact(cause, why=str(error)))
    return listed


def write_artefacts(folder: str, result: Result, written: Sequence[Artefact]) -> list[str]:
    """Write the files into a new or empty folder, with CHECKS.txt beside them; their names. Raises InputError where the
    folder cannot take them, before anything is written."""
    check_new_folder(folder)
    texts = {artefact.name: artefact.text for artefact in written if not artefact.why}
    texts[CHECKS] = checks_text(result, written)
    place = Path(folder)
    place.mkdir(mode=0o700, exist_ok=True)
    for name, text in texts.items():
        with replacing(str(place / name)) as raw:
            raw.write(text.encode())
    return list(texts)


def checks_text(result: Result, written: Sequence[Artefact]) -> str:
    """What each file is for, how to apply it, and what shows that it worked; then the causes without a file."""
    assert result.verdict is not None  # noqa: S101 - only a diagnosis has files
    lines = [f"Verdict: {result.verdict.state.value}: {clean(result.verdict.headline)}", ""]
    for number, cause in enumerate(result.verdict.causes, start=1):
        lines.append(f"{number}. {cause.finding.id} {clean(cause_words(cause.finding))} ({cause.status.value})")
        own = [artefact for artefact in written if artefact.cause == cause]
        for artefact in own:
            if artefact.why:
                lines.append(f"   no file: {clean(artefact.why)}")
            else:
                lines += [f"   file   {artefact.name}", f"   apply  {artefact.apply}", f"   check  {artefact.check}"]
        if not own:
            lines.append("   no file applies this fix")
        lines += [f"   do     {clean(step)}" for step in cause.finding.fix]
        lines += [f"   check  {command}" for command in cause.confirm]
        lines.append("")
    if not result.verdict.causes:
        lines += ["No cause was found: there is nothing to write.", ""]
    return "\n".join(lines)


def _topology(cause: Cause, result: Result, paths: Sequence[str]) -> Iterator[Artefact]:
    """The topology file of each host of the cause, of the machine as it is."""
    by_host = {node.host: node for node in result.nodes}
    hosts = [host for host in cause.finding.where.nodes if host in by_host]
    if not hosts:
        yield Artefact(cause, why="no capture of the node is in the evidence: topodiag scan --save NODE.tar.gz on it")
    version = next((version for job in result.jobs for version in job.nccl_versions), DEFAULT_VERSION)
    for host in hosts[:MAX_HOSTS]:
        bare = replace(by_host[host], nccl_file=None)
        detected = tree_of(bare)
        topology = Topology(host, bare, detected.tree, detected.assumed)
        topo_file = make_topo_file(topology, version=version, complete=by_evidence(topology))
        if topo_file.worse:
            yield Artefact(cause, why=f"a file of {host} would make it slower: {topo_file.worse[0]}")
            continue
        name = f"{_file_name(host)}.topo.xml"
        yield Artefact(
            cause, name, topo_file.text,
            f"copy it to {host} and set NCCL_TOPO_FILE to it there, or unset NCCL_TOPO_FILE: NCCL finds the same",
            f"topodiag topo check {name}",
        )  # fmt: skip


def _conf(cause: Cause, result: Result, paths: Sequence[str]) -> Iterator[Artefact]:
    """The nccl.conf without the settings that cost, and what no file can do."""
    hosts = set(cause.finding.where.nodes)
    own = [node for node in result.nodes if not hosts or node.host in hosts]
    conf_file = conf_of(replace(result, nodes=tuple(own)), fold_hosts(sorted(hosts)) or "the job")
    if not conf_file.text:
        elsewhere = "; ".join(conf_file.advice.elsewhere)
        yield Artefact(cause, why=elsewhere or "no line of an nccl.conf changes it: take it out of the environment")
        return
    apply = "as /etc/nccl.conf or ~/.nccl.conf on every node of the job"
    check = "NCCL_DEBUG=INFO: the log of the next run shows these values and none of those taken out"
    yield Artefact(cause, "nccl.conf", conf_file.text, apply, check)


def _placement(cause: Cause, result: Result, paths: Sequence[str]) -> Iterator[Artefact]:
    """The solved map, in the words of launchers that take any order of ranks."""
    from topodiag.app.case.place_paths import place_options  # noqa: PLC0415
    from topodiag.app.judge.placing import solve_placement  # noqa: PLC0415
    from topodiag.emit.place_formats import write  # noqa: PLC0415 - numpy, which only maps need

    solved = solve_placement(place_options({}, paths))
    check = "topodiag place audit with this file instead of the old one: no finding PLC001 or PLC006"
    for launcher, name in (("slurm-hostfile", "slurm-hostfile.txt"), ("rankfile", "rankfile.txt")):
        written = write(solved.place, launcher)
        yield Artefact(cause, name, written.text, re.sub(r"\bFILE\b", name, written.command or launcher), check)


_MAKERS: tuple[tuple[tuple[str, ...], Callable[[Cause, Result, Sequence[str]], Iterator[Artefact]]], ...] = (
    (("TOP002", "TOP003", "TOP005", "TOP006"), _topology),
    (("PLC",), _placement),
    (("ENV",), _conf),
)
"""By the start of a check's id, what makes its files. A cause that names settings has an nccl.conf as well."""


def _file_name(host: str) -> str:
    """A host's name as the name of a file."""
    return "".join(sign if sign.isalnum() or sign in "-_" else "_" for sign in host)[:64] or "node"
