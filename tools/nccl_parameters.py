"""Prints when each variable of NCCL came, when it went, and its default, by the tags of a checkout.

    python -m tools.nccl_parameters CHECKOUT [--ref REF ...] [--library VERSION=libnccl.so.2 ...] [--against TABLE]

CHECKOUT is a clone of github.com/NVIDIA/nccl with its tags, bare or not. One line a variable, parted by tabs: name,
first release that reads it, last release that did ("" while it is read), default as the source writes it, place in the
newest source. --ref reads branches beside the tags, as the newest. A library of a release whose source is not there
tells names alone, and constants look the same: it counts for the names of a table. --against prints what a table like
topodiag/checks/shared/nccl_parameters.toml has otherwise, and what it lacks. Nothing is fetched and nothing written.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tomllib
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

FOLDERS = ("src", "plugins", "ext-profiler", "ext-tuner", "ext-net")
_TAG = re.compile(r"v(2)\.(\d{1,2})\.(\d{1,2})-\d{1,2}")
_PARAM = re.compile(r'\bNCCL_PARAM\(\s*\w+,\s*"(\w+)",\s*((?:[^();]|\([^()]*\))+)\)')
_DEFINED = re.compile(r"\bDEFINE_NCCL_PARAM\(\s*\w+,\s*[^,]+,\s*(NCCL_\w+),\s*((?:[^(),]|\([^()]*\))+),")
_LITERAL = re.compile(r'"(NCCL_[A-Z][A-Z0-9_]+)"')
_STRING = re.compile(rb"(?<![\w\-])NCCL_[A-Z][A-Z0-9_]{1,60}(?=\0)")


@dataclass(frozen=True)
class Variable:
    """`since` and `until` as `2.18.1`; `until` "" while the newest source reads it."""

    since: str
    until: str
    default: str
    place: str


def parameters(text: str) -> Iterator[tuple[str, str]]:
    """Names and defaults in a source file; "" for the default of a name that stands alone in quotes, most of which are
    asked of the environment directly."""
    for name, default in _PARAM.findall(text):
        yield f"NCCL_{name}", " ".join(default.split())
    for name, default in _DEFINED.findall(text):
        yield name, " ".join(default.split())
    for name in _LITERAL.findall(text):
        yield name, ""


def _git(checkout: str, *command: str) -> str:
    return subprocess.run(
        ["git", "-C", checkout, *command], check=True, capture_output=True, text=True, errors="replace"
    ).stdout


def _releases(checkout: str) -> list[tuple[str, str]]:
    """Releases as `2.18.1` and their tags, oldest first; of several tags of a release the last."""
    found: dict[tuple[int, ...], str] = {}
    for tag in _git(checkout, "tag").split():
        if matched := _TAG.fullmatch(tag):
            found[tuple(int(part) for part in matched.groups())] = tag
    return [(".".join(map(str, version)), tag) for version, tag in sorted(found.items())]


def read(checkout: str, ref: str) -> dict[str, tuple[str, str]]:
    """Default and place by name in one revision."""
    pattern = 'NCCL_PARAM|"NCCL_'
    folders = [each for each in FOLDERS if _git(checkout, "ls-tree", ref, "--", each)]
    found = _git(checkout, "grep", "-lE", pattern, ref, "--", *folders).split()
    files = [each for each in found if each.endswith((".cc", ".cu", ".h", ".c"))]
    made: dict[str, tuple[str, str]] = {}
    for file in files:
        path = file.partition(":")[2]
        for name, default in parameters(_git(checkout, "show", file)):
            if name not in made or (default and not made[name][0]):
                made[name] = default, path
    return made


def table(
    checkout: str, refs: Sequence[str], libraries: Sequence[str], held: Collection[str] = ()
) -> dict[str, Variable]:
    """All variables of all releases; of the libraries those that are `held`."""
    made: dict[str, Variable] = {}
    releases = [*_releases(checkout), *((ref, ref) for ref in refs)]
    before = ""
    for version, tag in releases:
        now = read(checkout, tag)
        for name, (default, place) in now.items():
            known = made.get(name)
            made[name] = Variable(known.since if known else version, "", default, place)
        for name, known in made.items():
            if name not in now and not known.until:
                made[name] = Variable(known.since, before, known.default, known.place)
        before = version
    for each in libraries:
        version, _, path = each.partition("=")
        for name in {found.decode() for found in _STRING.findall(Path(path).read_bytes())} & set(held):
            known = made.get(name)
            if known is None or known.since in refs:
                made[name] = Variable(version, "", known.default if known else "", known.place if known else "")
    return dict(sorted(made.items()))


def _differences(made: dict[str, Variable], held: dict[str, dict[str, str]], refs: Sequence[str]) -> Iterator[str]:
    """Names of plug-ins need not be held, and a branch is no release."""
    for name, each in made.items():
        if name not in held:
            if each.place.startswith("src/"):
                yield f"{name}: not in the table (since {each.since}, {each.place})"
        elif each.since in refs:
            yield f"{name}: on {each.since} alone"
        elif held[name]["since"] != each.since or held[name].get("until", "") != each.until:
            yield f"{name}: {held[name]['since']} to {held[name].get('until', '')}, but {each.since} to {each.until}"
    for name in held.keys() - made.keys():
        yield f"{name}: in no source"


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkout")
    parser.add_argument("--ref", nargs="+", default=[])
    parser.add_argument("--library", nargs="+", default=[])
    parser.add_argument("--against")
    options = parser.parse_args(arguments)
    held = tomllib.loads(Path(options.against).read_text(encoding="utf-8")) if options.against else {}
    made = table(options.checkout, options.ref, options.library, held)
    if held:
        print("\n".join(_differences(made, held, options.ref)))
        return 0
    for name, each in made.items():
        print("\t".join((name, each.since, each.until, each.default, each.place)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
