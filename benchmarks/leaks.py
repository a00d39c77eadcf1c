"""Prints what `--redact` lets out: known texts with a host, a user, a path, an address, a login and a token planted in
each line, through every channel.

    python benchmarks/leaks.py [FOLDER] [--every N]     default: fixtures/field, each case

Channels: the terminal, JSON, the page, the files of `--to` with their names, saved facts; of a fleet and of a sweep
the tables, lists, plans, pictures, pages and the store of `fleet history`; emitted files; lines of errors. A secret
(login, token) may not come out without `--redact` either. The exit code is 1 where something does.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import click
from click.testing import CliRunner

from benchmarks.field import FOLDER, Case, cases
from benchmarks.fleet_bundles import packed, write_fleet
from fixtures.generate import bundle
from fixtures.generate.machines.dgx_h100 import dgx_h100
from topodiag.cli import cli
from topodiag.cli.errors import Outcome
from topodiag.evidence.marks import FACTS_MARK
from topodiag.evidence.nccl_log.tables.saved import load

SWEEP = Path(__file__).resolve().parents[1] / "tests" / "fuzz" / "texts"
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
SECRETS_IN_THE_OPEN = {"login": ("Lapw1ng",), "token": ("7hUq2Lx9",)}
"""What may not be seen without `--redact` either."""


def planted(text: str) -> str:
    """The text with all of them at the end of each line; what is no line of words stays."""
    values = [*IDENTITIES.values(), *SECRETS.values()]
    lines = text.split("\n")
    return "\n".join(f"{line} {values[at % len(values)]}" if line.strip() else line for at, line in enumerate(lines))


def run(channel: str, *arguments: str, hide: str) -> tuple[str, str]:
    """Channel and text of a command; `hide` is a path that is ours. A command that ends with nothing but an error would
    show nothing of what it hides. Raises RuntimeError."""
    done = CliRunner().invoke(cli, arguments, obj=Outcome())
    if isinstance(done.exception, click.UsageError) or done.exit_code == 2:
        raise RuntimeError(f"{' '.join(arguments)}: {done.output or done.exception}")
    said = done.output if done.exception is None or isinstance(done.exception, SystemExit) else str(done.exception)
    return channel, said.replace(hide, "")


def left_in(folder: Path, hide: str) -> Iterator[tuple[str, str]]:
    """Channel, which is the file's first word, and name and text of each file below a folder."""
    for path in sorted(each for each in folder.rglob("*") if each.is_file()):
        name = str(path.relative_to(folder))
        channel = name.partition("/")[0].partition(".")[0]
        data = path.read_bytes()
        if data.startswith(FACTS_MARK):
            tables = load(str(path))[0].tables.values()
            yield channel, f"{name}\n{[table.rows() for table in tables]}"
        else:
            yield channel, f"{name}\n{data.decode(errors='replace')}".replace(hide, "")


def outputs(case: Case, top: Path, *, redact: bool) -> Iterator[tuple[str, str]]:
    """Channel and text of all that commands leave of a known text."""
    given, left = top / "given", top / f"left-{redact}"
    given.mkdir(exist_ok=True)
    left.mkdir()
    for name, text in case.inputs:
        (given / name).write_text(planted(text), encoding="utf-8", errors="surrogateescape")
    more = ("--redact",) if redact else ()
    asked = ("diagnose", str(given), "--verbose", "--width", "300", *more)
    pages = ("--html", str(left / "html.html"), "--to", str(left / "write"))
    yield run("table", *asked, *pages, hide=str(given))
    yield run("json", *asked, "--format", "json", hide=str(given))
    saved = ("--save", str(left / "saved facts")) if not redact else ()
    yield run("logs", "logs", str(given), "--format", "json", "--workers", "1", *saved, *more, hide=str(given))
    yield from left_in(left, str(given))


def fleet_outputs(top: Path, *, redact: bool) -> Iterator[tuple[str, str]]:
    """The same of a fleet: a node with an odd command line among its peers, and a sweep of such nodes."""
    given, left = top / "fleet", top / f"left-{redact}"
    left.mkdir()
    if not given.exists():
        write_fleet(given, 5, 1)
        odd = dgx_h100(IDENTITIES["host"])
        odd.cmdline = " ".join(["intel_iommu=on", *IDENTITIES.values(), *SECRETS.values()])
        odd.memlock = "65536"
        (given / "odd.tar.gz").write_bytes(packed(bundle.files(odd)))
        (top / "sweep").mkdir()
        for name, to in (("plan.json", "plan-1.json"), ("results.jsonl", "results.jsonl")):
            text = (SWEEP / name).read_text(encoding="utf-8")
            (top / "sweep" / to).write_text(re.sub(r"\bgpu(?=[0-9[])", "kestrel-gx-", text), encoding="utf-8")
    more = ("--redact",) if redact else ()
    compare = ("fleet", "compare", str(given), "--workers", "1", *more)
    lists = ("--pass-list", str(left / "pass list"), "--fail-list", str(left / "fail list"))
    yield run("fleet", *compare, *lists, "--html", str(left / "fleet page.html"), hide=str(top))
    for form in ("json", "jsonl", "csv", "drain", "conditions"):
        yield run(f"fleet {form}", *compare, "--format", form, hide=str(top))
    store = top / f"store-{redact}"
    history = ("fleet", "history", str(store), str(given), *more)
    yield run("history", *history, "--html", str(left / "history page.html"), hide=str(top))
    yield run("history json", *history, "--format", "json", hide=str(top))
    sweep = ("bench", "read", str(top / "sweep"), *more)
    drawn = ("--svg", str(left / "sweep picture.svg"), "--html", str(left / "sweep page.html"))
    yield run("sweep", *sweep, *drawn, hide=str(top))
    if not redact:  # a plan is for the nodes that it names
        yield run("sweep plan", *sweep, "--next", str(left / "sweep plan.json"), hide=str(top))
    for command in ("nccl-conf", "nccl-topo", "picture"):
        yield run(f"emit {command}", "emit", command, str(given / "odd.tar.gz"), hide=str(top))
    yield from left_in(left, str(top))
    if not redact:  # a store keeps names, for its owner alone
        yield from (("store", text) for _, text in left_in(store, str(top)))


Leak = tuple[str, str, str]
"""Channel, what was planted, and the trace of it that came out."""


def leaks(case: Case | None, met: Counter[str] | None = None) -> list[Leak]:
    """What comes out of a text, or of the fleet where there is none. `met` counts what was looked for by channel."""
    found = []
    with tempfile.TemporaryDirectory() as top:
        for redact in (True, False):
            made = outputs(case, Path(top), redact=redact) if case else fleet_outputs(Path(top), redact=redact)
            for channel, text in made:
                # What is emitted is for the node that it was read from, and keeps its names.
                wanted = TRACES if redact and not channel.startswith("emit ") else SECRETS_IN_THE_OPEN
                name = channel if redact else f"{channel} without --redact"
                if met is not None:
                    met[name] += len(wanted)
                found += [(name, kind, trace) for kind, traces in wanted.items() for trace in traces if trace in text]
    return found


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=FOLDER)
    parser.add_argument("--every", type=int, default=1, help="take each Nth case")
    given = parser.parse_args(argv)
    chosen = list(cases(given.folder))[:: given.every]
    counts: Counter[str] = Counter()
    met: Counter[str] = Counter()
    for case in (None, *chosen):
        for channel, kind, trace in dict.fromkeys(leaks(case, met)):
            counts[channel] += 1
            print(f"{case.name if case else 'fleet'}: {channel}: {kind}: {trace}")
    print(f"{'channel':40} {'looked for':>10} {'came out':>9}")
    for channel, number in met.items():
        print(f"{channel:40} {number:10} {counts[channel]:9}")
    print(f"a fleet, a sweep and {len(chosen)} texts: {counts.total()} of {met.total()} came out")
    return 1 if counts else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
