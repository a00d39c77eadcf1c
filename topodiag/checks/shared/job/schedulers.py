"""Advice in the words of the scheduler that a job's evidence shows: by schedulers.toml. Written in Slurm's, which stay
where no scheduler shows itself."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from topodiag.model.job import Job
from topodiag.words.own_data import own_data, patterns

_ACCOUNT = patterns("checks/shared/job/schedulers", "spoken")["account"]
_SHOWN = patterns("checks/shared/job/schedulers", "shown")["scheduler"]
_POD = "kubectl describe pod POD"


def scheduler_of(job: Job) -> Mapping[str, str] | None:
    """The words of the one scheduler that lines of a job, or the names of its texts, show; None where none or several
    do."""
    texts = [*job.files, *(event.text for event in job.events if event.kind == "ended")]
    shown = {match.lastgroup for text in texts for match in _SHOWN.finditer(text)}
    return own_data("checks/shared/job/schedulers")["words"][shown.pop()] if len(shown) == 1 else None


def in_words_of(scheduler: Mapping[str, str] | None, text: str) -> str:
    """Advice in a scheduler's words."""
    if scheduler is None:
        return text
    text = text.replace("--mem, resources.limits.memory", scheduler["memory"]).replace("--time", scheduler["limit"])
    account = scheduler["account"]
    return _ACCOUNT.sub(lambda match: account or match[0].removesuffix("`, `kubectl describe pod"), text)


def commands_of(scheduler: Mapping[str, str] | None, commands: Iterable[str]) -> tuple[str, ...]:
    """Commands in a scheduler's words, each once, without those of another one."""
    spelt = dict.fromkeys(in_words_of(scheduler, command) for command in commands)
    is_pod = scheduler is None or scheduler["account"] == _POD
    return tuple(command for command in spelt if command != _POD or is_pod)
