"""Writes the pages of eleven fixtures and their screens, to be looked at: wide and narrow, light and dark.

python tools/build_screens.py FOLDER              NAME.html, and NAME-WIDTH-SCHEME.png for each
python tools/build_screens.py FOLDER --only hang  one of them; repeat it
python tools/build_screens.py --readme            docs/report.png, the screen of the README

Needs Debian's Chromium and playwright (the extra `test`). Nothing compares the screens: fonts differ between machines.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

from fleet_bundles import write_fleet  # noqa: E402
from page import fleet  # noqa: E402

from fixtures.generate import bundle  # noqa: E402
from fixtures.generate.machines.blackwell import gb200_tray  # noqa: E402
from fixtures.generate.wiring import take_down  # noqa: E402
from topodiag.cli import cli  # noqa: E402
from topodiag.cli.errors import run  # noqa: E402
from topodiag.report.html.page import html_of, result_sheet  # noqa: E402
from topodiag.report.table import draw_result  # noqa: E402

WIDTHS = (1280, 390)
"""A laptop and a telephone, pixels of CSS."""
HIGHEST = 16_000
"""Pixels of the longest screen: Chromium draws no larger one."""
README = ROOT / "docs" / "report.png"
README_SIZE = (1120, 700)

TRAYS = 18
LAYOUT = ("--system", "dgx-h100", "--nodes", "16", "--leaf", "8", "--tp", "8", "--pp", "4", "--rule", "cyclic")


def _command(*words: str) -> Callable[[Path], str]:
    """The page that a command writes."""

    def made(folder: Path) -> str:
        page = folder / "page.html"
        with redirect_stdout(StringIO()):
            run(cli, [*words, "--html", str(page), "--quiet"])
        return page.read_text(encoding="utf-8")

    return made


def _fleet_of_200(folder: Path) -> str:
    write_fleet(folder / "bundles", 200, 15)
    return _command("fleet", "compare", str(folder / "bundles"))(folder)


def _fleet_of_10000(_folder: Path) -> str:
    """One captured node under as many names: bundles of so many take minutes to write."""
    return html_of(result_sheet("scan", fleet(10_000), draw_result))


def _rack(folder: Path) -> str:
    """A GB200 NVL72 with two links of one GPU down."""
    for number in range(TRAYS):
        tray = gb200_tray(f"nvl72-r2-t{number + 1:02}")
        if number == 6:
            take_down(tray.gpus[2], [4, 5])
        for name, text in bundle.files(tray).items():
            file = folder / "rack" / tray.host / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
    return _command("scan", *(str(each) for each in sorted((folder / "rack").iterdir())))(folder)


PAGES: dict[str, Callable[[Path], str]] = {
    "slow-job": _command("diagnose", str(ROOT / "fixtures/incidents/half-the-links-of-one-gpu")),
    "dead-job": _command("diagnose", str(ROOT / "fixtures/incidents/gpu-lost-no-capture")),
    "hang": _command("diagnose", str(ROOT / "fixtures/incidents/data-loader-of-one-rank")),
    "degraded-pcie": _command("scan", "fixture:dgx-h100-gpu5-x4"),
    "degraded-nvlink": _command("scan", "fixture:dgx-h100-gpu3-12of18-nvlink"),
    "healthy-node": _command("scan", "fixture:dgx-h100-healthy"),
    "sweep": _command("bench", *(str(each) for each in sorted((ROOT / "fixtures/tables").glob("*/out.txt")))),
    "placement": _command("place", "solve", *LAYOUT),
    "fleet-200": _fleet_of_200,
    "fleet-10000": _fleet_of_10000,
    "nvl72-rack": _rack,
}


def page_of(name: str) -> str:
    """The page of this name. Raises FileNotFoundError where the command ended with an error, which it printed."""
    with tempfile.TemporaryDirectory(prefix="topodiag-screens-") as folder:
        return PAGES[name](Path(folder))


@contextmanager
def browser() -> Iterator[Any]:
    """Chromium without a window. Raises SystemExit where it is not installed."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        raise SystemExit("screens need playwright: pip install -e '.[test]'") from None
    chromium = shutil.which("chromium")
    if chromium is None:
        raise SystemExit("screens need Chromium: apt-get install chromium")
    with sync_playwright() as started:
        running = started.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-dev-shm-usage"])
        yield running
        running.close()


def shoot(chromium: Any, page: Path, width: int, scheme: str, screen: Path) -> None:
    """One screen of the whole page."""
    shown = chromium.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    shown.goto(page.resolve().as_uri())
    # What is far below the window is not drawn until somebody scrolls there.
    shown.add_style_tag(content="details.finding { content-visibility: visible !important; }")
    high = min(shown.evaluate("document.documentElement.scrollHeight"), HIGHEST)
    shown.screenshot(path=screen, clip={"x": 0, "y": 0, "width": width, "height": high}, full_page=True)
    wide = shown.evaluate("document.documentElement.scrollWidth")
    if wide > width:
        print(f"{screen.name}: the page is {wide - width} pixels wider than the window")
    shown.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", help="where the pages and their screens are written")
    parser.add_argument("--only", action="append", choices=PAGES, help="this page alone; repeat it")
    parser.add_argument("--readme", action="store_true", help="write docs/report.png")
    asked = parser.parse_args()
    if asked.folder is None and not asked.readme:
        parser.error("name a folder, or --readme")
    with browser() as chromium:
        if asked.readme:
            _readme(chromium)
        if asked.folder is not None:
            asked.folder.mkdir(parents=True, exist_ok=True)
            for name in asked.only or PAGES:
                page = asked.folder / f"{name}.html"
                page.write_text(page_of(name), encoding="utf-8")
                for width in WIDTHS:
                    for scheme in ("light", "dark"):
                        shoot(chromium, page, width, scheme, asked.folder / f"{name}-{width}-{scheme}.png")


def _readme(chromium: Any) -> None:
    """The top of the page of a slow job."""
    with tempfile.TemporaryDirectory(prefix="topodiag-screens-") as folder:
        page = Path(folder) / "page.html"
        page.write_text(page_of("slow-job"), encoding="utf-8")
        wide, high = README_SIZE
        shown = chromium.new_page(viewport={"width": wide, "height": high}, color_scheme="light")
        shown.goto(page.as_uri())
        shown.screenshot(path=README)


if __name__ == "__main__":
    main()
