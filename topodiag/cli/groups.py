"""The groups of commands: groups.toml says what each is for and where its commands live, which load when they run."""

from __future__ import annotations

from topodiag.cli import LazyGroup
from topodiag.words.own_data import own_data


def _group(name: str) -> LazyGroup:
    group = own_data("cli/groups")[name]
    of_paths: str = group.get("of_paths", "")
    usage = "PATH... | COMMAND [ARGS]..." if of_paths else None
    return LazyGroup(name, places=group["commands"], of_paths=of_paths, help=group["help"], subcommand_metavar=usage)


bench, fleet, place = _group("bench"), _group("fleet"), _group("place")
topo, model, emit = _group("topo"), _group("model"), _group("emit")
