"""Prints the JSON of what the program says of fixtures, a line each, to compare two versions of Python byte for byte.

    python benchmarks/figures.py [--every N] > FILE     --every: each Nth fixture; models and maps are all asked
    cmp FILE OTHER

A line is the command, a tab, and its document. The last line counts them. Every figure is in it with all its digits.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from click.testing import CliRunner

from benchmarks.agreement import FIXTURES, cases
from topodiag.cli import cli
from topodiag.cli.errors import Outcome

SYSTEMS = ("dgx-h100", "dgx-a100", "dgx-b200", "p5.48xlarge", "gb200-nvl72")
COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast")
LAYOUTS = ("--tp 8", "--tp 4 --pp 4", "--tp 2 --cp 2 --pp 2", "--tp 4 --ep 8 --experts 64", "--tp 8 --pp 5 --nodes 15")


def planned() -> Iterator[str]:
    """Commands that read no evidence."""
    for system in SYSTEMS:
        yield f"model link --system {system}"
        yield f"model hierarchy --system {system}"
        for collective in COLLECTIVES:
            yield f"model collective {collective} --system {system} --placement 3x8 --versus 24x1 --leaf 2"
    for layout in LAYOUTS:
        nodes = "" if "--nodes" in layout else " --nodes 16"
        yield f"model step {layout}{nodes} --leaf 4 --oversubscription 3"
        for rule in ("block", "cyclic"):
            yield f"place audit {layout}{nodes} --leaf 4 --oversubscription 3 --rule {rule}"
        yield f"place solve {layout}{nodes} --leaf 4 --oversubscription 3"
    for node in sorted((FIXTURES / "nodes").iterdir()):
        yield f"topo predict fixture:{node.name}"
    for table in sorted((FIXTURES / "tables").iterdir()):
        yield f"bench {table}"


def document(*command: str) -> str:
    """The JSON of a command on one line, or how it refuses."""
    done = CliRunner().invoke(cli, [*command, "--format", "json"], obj=Outcome())
    try:
        return json.dumps(json.loads(done.stdout), ensure_ascii=False)
    except ValueError:
        return f"{done.exit_code} {done.exception!r} {done.output.strip()}".replace("\n", " ")


def judged(name: str, paths: Sequence[str]) -> str:
    """The JSON of `topodiag diagnose` on a case, without the folders of this machine."""
    if not name.startswith("field/"):
        return document("diagnose", *paths).replace(str(FIXTURES), "")
    with tempfile.TemporaryDirectory() as top:
        folder = Path(top, "case")
        folder.mkdir()
        for at, given in enumerate(json.loads(Path(paths[0]).read_text(encoding="utf-8")).get("inputs") or ()):
            Path(folder, given.get("name") or f"{at}.txt").write_text(str(given["text"]), encoding="utf-8")
        return document("diagnose", str(folder)).replace(top, "")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--every", type=int, default=1)
    given = parser.parse_args()
    count = 0
    for command in planned():
        print(command.replace(str(FIXTURES), ""), document(*command.split()).replace(str(FIXTURES), ""), sep="\t")
        count += 1
    for name, paths in [case for case in cases() if not case[0].startswith("corpus/")][:: given.every]:
        print(name, judged(name, paths), sep="\t", flush=True)
        count += 1
    print(f"{count} documents")
    return 0


if __name__ == "__main__":
    sys.exit(main())
