"""Prints what `--redact` lets out: known texts with a host, a user, a path, an address, a login and a token planted in
each line, through every channel.

    python benchmarks/leaks.py [FOLDER] [--every N]     default: fixtures/field, each case

Channels: the terminal, JSON, the page, and the files of `--write` with their names. A secret (login, token) may not
come out without `--redact` either. The exit code is 1 where something does.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from click.testing import CliRunner

from benchmarks.field import FOLDER, Case, cases
from topodiag.cli import cli
from topodiag.cli.errors import Outcome

IDENTITIES = {
    "host": "kestrel-gx-0417",
    "user": "tvandermeer",
    "path": "/data/osprey-sft-v9/ckpt_heron22",
    "address": "10.88.61.93",
}
SECRETS = {
    "login": "https://svc_heron:Lapw1ngQ44x@git.moorhen.example.net/x",
    "token": "glpat-7hUq2Lx9VbN4mT1cRz8K",
}
TRACES = {
    "host": ("kestrel-gx",),
    "user": ("tvandermeer",),
    "path": ("osprey", "heron22"),
    "address": ("10.88.61.93",),
    "login": ("svc_heron", "Lapw1ng", "moorhen"),
    "token": ("glpat-7hUq", "7hUq2Lx9"),
}
"""What of each must not be seen. A login's server is an identity, not a secret."""
OPEN = ("Lapw1ng", "7hUq2Lx9")
"""What may not be seen without `--redact` either."""


def planted(text: str) -> str:
    """The text with all of them at the end of each line; what is no line of words stays."""
    values = [*IDENTITIES.values(), *SECRETS.values()]
    lines = text.split("\n")
    return "\n".join(f"{line} {values[at % len(values)]}" if line.strip() else line for at, line in enumerate(lines))


def outputs(case: Case, top: Path, *, redact: bool) -> Iterator[tuple[str, str]]:
    """Channel and text of all that a diagnosis of the case leaves."""
    given, left = top / "given", top / f"left-{redact}"
    given.mkdir(exist_ok=True)
    left.mkdir()
    for name, text in case.inputs:
        (given / name).write_text(planted(text), encoding="utf-8", errors="surrogateescape")
    more = ("--redact",) if redact else ()
    for form in ("table", "json"):
        extra = ("--html", str(left / "page.html"), "--write", str(left / "files")) if form == "table" else ()
        done = CliRunner().invoke(
            cli, ["diagnose", str(given), "--format", form, "--verbose", "--width", "300", *more, *extra], obj=Outcome()
        )
        yield form, done.output.replace(str(given), "")
    for path in sorted(each for each in left.rglob("*") if each.is_file()):
        text = path.read_text(encoding="utf-8", errors="replace").replace(str(given), "")
        yield "html" if path.name == "page.html" else "write", f"{path.name}\n{text}"


def leaks(case: Case) -> list[tuple[str, str, str]]:
    """Channel, what was planted, and the trace of it that came out."""
    found = []
    with tempfile.TemporaryDirectory() as top:
        for redact in (True, False):
            for channel, text in outputs(case, Path(top), redact=redact):
                found += [
                    (channel if redact else f"{channel} without --redact", kind, trace)
                    for kind, traces in TRACES.items()
                    for trace in traces
                    if (redact or trace in OPEN) and trace in text
                ]
    return found


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=FOLDER)
    parser.add_argument("--every", type=int, default=1, help="take each Nth case")
    given = parser.parse_args(argv)
    chosen = list(cases(given.folder))[:: given.every]
    counts: Counter[tuple[str, str]] = Counter()
    for case in chosen:
        for channel, kind, trace in dict.fromkeys(leaks(case)):
            counts[channel, kind] += 1
            print(f"{case.name}: {channel}: {kind}: {trace}")
    print(f"{len(chosen)} texts: {sum(counts.values())} leaks")
    for (channel, kind), count in sorted(counts.items()):
        print(f"  {channel}: {kind}: {count}")
    return 1 if counts else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
