"""Writes docs/checks.md from the checks' own docstrings, and docs/scan.svg from a scan of a shipped fixture.

python tools/build_docs.py            write them
python tools/build_docs.py --check    exit 1 when a check page is not what the docstrings say
"""

from __future__ import annotations

import argparse
import inspect
import io
import os
import subprocess
import sys
from pathlib import Path

from topodiag.checks import registry

DOCS = Path(__file__).parent.parent / "docs"
PICTURED = "fixture:dgx-h100-gpu3-12of18-nvlink"


def check_pages() -> str:
    """All pages in the order of the catalogue, as Markdown."""
    pages = [
        "# The checks",
        "",
        "Generated from the docstrings by `tools/build_docs.py`; `topodiag explain ID` prints one.",
        "",
    ]
    classes = {check_id: registry.check_class(check_id) for check_id in registry.ids()}
    pages += [f"- [{check_id}](#{check_id.lower()}) {cls.title}" for check_id, cls in classes.items() if cls]
    for check_id, cls in classes.items():
        text = inspect.cleandoc((cls.__doc__ if cls else None) or "")
        title, _, body = text.partition("\n")
        pages += ["", f"## {check_id}", "", f"**{title.partition(': ')[2]}**", "", "```text", body.strip("\n"), "```"]
    return "\n".join(pages) + "\n"


def picture() -> str:
    """A scan as an SVG of a terminal 100 columns wide."""
    from rich.console import Console
    from rich.text import Text

    argv = [sys.executable, "-m", "topodiag", "scan", "--from", PICTURED, "--color", "always", "--width", "100"]
    env = {**os.environ, "PYTHONUTF8": "1", "COLORTERM": "truecolor", "TERM": "xterm-256color"}
    shown = subprocess.run(argv, capture_output=True, text=True, env=env, check=False).stdout
    console = Console(record=True, width=100, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    console.print(Text.from_ansi(shown))
    return console.export_svg(title="topodiag scan")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    wanted = check_pages()
    page = DOCS / "checks.md"
    if parser.parse_args().check:
        same = page.is_file() and page.read_text(encoding="utf-8") == wanted
        print("docs/checks.md is current" if same else "docs/checks.md is stale: run python tools/build_docs.py")
        return 0 if same else 1
    page.write_text(wanted, encoding="utf-8")
    (DOCS / "scan.svg").write_text(picture(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
