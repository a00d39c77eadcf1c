"""The page in a real browser: it asks for nothing, works with and without script, in each mode, by keyboard, and again
after it was saved. One browser for the module; skipped, and said, where there is none."""

import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.report.html.pages import HOSTILE, hostile_page, logged_job, many_nodes, measured_run, odd_node, slow_job
from topodiag.words.text import clean

playwright = pytest.importorskip(
    "playwright.sync_api", reason="pip install playwright: the page is not tried in a browser"
)
CHROMIUM = shutil.which("chromium")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="apt-get install chromium: the page is not tried in a browser")
LIMIT_MS = 20_000


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-dev-shm-usage"])
        yield browser
        browser.close()


@dataclass
class Opened:
    """A page in the browser, and all that it asked for, said and threw."""

    page: Any
    url: str
    asked: list[str] = field(default_factory=list)
    said: list[str] = field(default_factory=list)

    def quiet(self) -> None:
        """It asked for itself alone, wrote nothing to the console, opened no dialog."""
        elsewhere = [
            url for url in self.asked if url.partition("#")[0] != self.url and not url.startswith("data:image/")
        ]
        assert elsewhere == []
        assert self.said == []

    def shown(self, query: str = "details.finding") -> list[str]:
        """The ids of what a filter leaves."""
        texts: list[str] = self.page.locator(f"{query}:not([hidden])").evaluate_all("all => all.map(each => each.id)")
        return texts


@pytest.fixture(scope="module")
def contexts(chromium: Any) -> Callable[..., Any]:
    """An offline context of these options: one for all tests that ask for the same: a page keeps nothing in it."""

    @cache
    def made(**options: Any) -> Any:
        given = {name: dict(value) if name == "viewport" else value for name, value in options.items()}
        context = chromium.new_context(reduced_motion="reduce", **given)
        context.set_default_timeout(LIMIT_MS)
        context.set_offline(True)
        return context

    return made


@pytest.fixture
def visit(contexts: Callable[..., Any], tmp_path: Path) -> Iterator[Any]:
    """Opens a page from a file, offline, with options of the context."""
    pages = []

    def opened(text: str, fragment: str = "", **options: Any) -> Opened:
        place = tmp_path / f"report{len(pages)}.html"
        place.write_text(text, encoding="utf-8")
        opened = Opened(contexts(**options).new_page(), place.as_uri())
        pages.append(opened.page)
        opened.page.on("request", lambda request: opened.asked.append(request.url))
        opened.page.on("console", lambda message: opened.said.append(message.text))
        opened.page.on("pageerror", lambda error: opened.said.append(str(error)))

        def refuse(dialog: Any) -> None:
            opened.said.append(f"dialog {dialog.message}")
            dialog.dismiss()

        opened.page.on("dialog", refuse)
        opened.page.goto(opened.url + fragment)
        return opened

    yield opened
    for page in pages:
        page.close()


@pytest.mark.parametrize("page", [slow_job, odd_node, hostile_page], ids=["slow job", "odd node", "hostile"])
def test_the_page_asks_for_nothing_and_says_nothing(visit, page) -> None:
    screen = visit(page())
    screen.page.locator("#verdict").wait_for()
    screen.quiet()


def test_verdict_findings_and_pictures_are_there_without_script(visit) -> None:
    page = visit(slow_job(), java_script_enabled=False)
    assert "GPU3 has 12 of 18 NVLinks active" in page.page.locator("#verdict").inner_text()
    assert page.page.locator("details.finding").count() == 2
    assert not page.page.locator(".tools").is_visible()
    assert not page.page.locator(".copy").first.is_visible()
    assert visit(odd_node(), java_script_enabled=False).page.locator("figure svg").first.is_visible()


def test_hostile_text_stands_there_as_text(visit) -> None:
    page = visit(hostile_page())
    findings = " ".join(page.page.locator("#findings").text_content().split())
    for attack in HOSTILE:
        assert " ".join(clean(attack).split()) in findings
    assert page.page.locator("a[href^='http'], a[href^='javascript'], form, iframe").count() == 0
    page.quiet()


COLOURS = """() => {
  const luminance = (color) => {
    const [r, g, b] = color.match(/[0-9.]+/g).slice(0, 3).map(Number).map((v) => v / 255)
      .map((v) => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = (node) => {
    for (let each = node; each; each = each.parentElement) {
      const color = getComputedStyle(each).backgroundColor;
      if (!/, 0\\)$/.test(color) && color !== "transparent") return color;
    }
    return "rgb(255, 255, 255)";
  };
  return ["error", "warning", "note", "ok", "unknown", "plain"].map((kind) => {
    const box = document.createElement("p");
    box.className = "answer " + kind;
    box.innerHTML = '<span class="state">word</span>';
    document.querySelector("main").append(box);
    const word = box.firstChild;
    const pair = [luminance(getComputedStyle(word).color), luminance(ground(word))].sort((a, b) => b - a);
    box.remove();
    return [kind, (pair[0] + 0.05) / (pair[1] + 0.05)];
  });
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_severity_has_a_contrast_of_four_and_a_half(visit, scheme) -> None:
    page = visit(slow_job(), color_scheme=scheme)
    assert all(contrast >= 4.5 for _, contrast in page.page.evaluate(COLOURS))
    ground = page.page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (int(re.findall(r"\d+", ground)[0]) < 64) == (scheme == "dark")


def test_forced_colours_keep_the_outline_of_what_is_framed(visit) -> None:
    page = visit(slow_job(), forced_colors="active")
    assert (
        page.page.locator("details.finding").first.evaluate("each => getComputedStyle(each).borderTopStyle") == "solid"
    )
    assert "error" in page.page.locator("details.finding").first.inner_text()


THINNED = """() => {
  for (const each of document.querySelectorAll("details")) each.open = true;
  for (const parent of document.querySelectorAll("ul, ol, dl, tbody, pre, svg")) {
    const seen = {};
    for (const child of [...parent.children]) {
      const kind = child.tagName + " " + child.getAttribute("class");
      seen[kind] = (seen[kind] || 0) + 1;
      if (seen[kind] > 4) child.remove();
    }
  }
}"""
"""Opens all, and leaves four of the rows of one kind: axe takes milliseconds for each, and says the same of all."""


@pytest.mark.parametrize(("page", "scheme"), [(slow_job, "light"), (odd_node, "dark")], ids=["light", "dark"])
def test_axe_finds_nothing_serious(visit, page, scheme) -> None:
    axe = pytest.importorskip("axe_playwright_python", reason="pip install axe-playwright-python")
    screen = visit(page(), color_scheme=scheme)
    screen.page.evaluate(THINNED)
    # The page forbids scripts but its own: axe is evaluated by the browser's tools.
    screen.page.evaluate((Path(axe.__file__).parent / "axe.min.js").read_text(encoding="utf-8"))
    violations = screen.page.evaluate(
        "axe.run(document, {resultTypes: ['violations'], selectors: false, preload: false})"
    )["violations"]
    serious = [
        (each["id"], each["nodes"][0]["html"][:200]) for each in violations if each["impact"] in {"serious", "critical"}
    ]
    assert serious == []


def test_tab_reaches_the_controls_in_order_and_enter_works(visit) -> None:
    page = visit(slow_job())
    reached = []
    for _ in range(60):
        page.page.keyboard.press("Tab")
        reached.append(page.page.evaluate("(e => e.id || e.className || e.tagName)(document.activeElement)"))
        if reached[-1] == "expand":
            break
    assert reached[0] == "skip"
    assert reached.index("q") < reached.index("reset") < reached.index("expand")
    before = page.page.locator("details.finding[open]").count()
    page.page.keyboard.press("Enter")
    assert page.page.locator("details.finding[open]").count() != before
    page.page.keyboard.press("Tab")
    opened = page.page.locator("details.finding[open]").count()
    page.page.keyboard.press("Enter")
    assert page.page.locator("details.finding[open]").count() != opened
    outline = page.page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline != "none"


def test_a_filter_survives_a_reload_and_travels_in_the_address(visit) -> None:
    page = visit(slow_job())
    assert len(page.shown()) == 2
    page.page.locator("#q").fill("gpu3 has")
    left = page.shown()
    assert len(left) == 1
    assert "q=gpu3" in page.page.url
    assert "1 of 2" in page.page.locator("#shown").inner_text()
    page.page.reload()
    assert page.shown() == left
    assert visit(slow_job(), page.page.url[page.page.url.index("#") :]).shown() == left
    page.page.locator("#reset").click()
    assert len(page.shown()) == 2
    assert "#" not in page.page.url
    page.quiet()


def test_a_table_is_sorted_by_its_head_and_stays_so(visit) -> None:
    page = visit(slow_job())
    head = page.page.locator("#t-events thead th").first
    cells = "all => all.map(row => row.cells[3].textContent.trim())"
    rows = page.page.locator("#t-events tbody tr")
    head.locator("button").click()
    up = rows.evaluate_all(cells)
    assert head.get_attribute("aria-sort") == "ascending"
    head.locator("button").click()
    assert head.get_attribute("aria-sort") == "descending"
    assert rows.evaluate_all(cells) == up[::-1]
    page.page.reload()
    assert rows.evaluate_all(cells) == up[::-1]
    assert page.page.locator("th[aria-sort]").count() == 1


def test_a_link_to_a_finding_opens_it(visit) -> None:
    page = visit(slow_job())
    page.page.locator("details.finding").evaluate_all("all => all.forEach(each => { each.open = false; })")
    page.page.locator("#todo a.id").first.click()
    assert page.page.locator("details.finding[open]").count() == 1


def test_a_step_is_copied(visit) -> None:
    page = visit(slow_job(), permissions=("clipboard-read", "clipboard-write"))
    button = page.page.locator("#todo .copy").first
    button.click()
    page.page.locator("#todo .copy", has_text="Copied").first.wait_for()
    step = page.page.locator("#todo .copied code").first.inner_text()
    assert page.page.evaluate("navigator.clipboard.readText()") == step


def test_the_json_is_saved_as_the_command_prints_it(visit) -> None:
    page = visit(odd_node())
    with page.page.expect_download() as download:
        page.page.locator("#save").click()
    assert download.value.suggested_filename == "topodiag-scan.json"
    assert '"id":"NVL001"' in Path(download.value.path()).read_text()


def test_a_page_that_was_saved_from_the_browser_opens_as_the_same_page(visit) -> None:
    page = visit(slow_job())
    page.page.locator("#q").fill("gpu3 has")
    again = visit(page.page.content())
    assert len(again.shown()) == 2
    assert again.page.locator("#verdict").inner_text() == page.page.locator("#verdict").inner_text()
    assert again.page.locator("button").count() == page.page.locator("button").count()
    again.page.locator("#q").fill("gpu3 has")
    assert again.shown() == page.shown()
    again.quiet()


def test_print_has_every_finding_opened_and_no_controls(visit) -> None:
    page = visit(odd_node())
    page.page.locator("details").evaluate_all("all => all.forEach(each => { each.open = false; })")
    pdf = page.page.pdf(format="A4")
    text = page.page.evaluate("document.body.innerText")
    assert pdf.startswith(b"%PDF")
    assert 2 <= pdf.count(b"/Type /Page\n") + pdf.count(b"/Type /Page ") <= 40
    printed = pdf_text(pdf)
    assert "GPU3 has 12 of 18 NVLinks active" in printed
    assert "gpus[3].nvlinks[4].state: 0" in printed
    assert "Open all" not in printed
    assert "topodiag explain NVL001" in printed
    assert text


def pdf_text(pdf: bytes) -> str:
    reader = pytest.importorskip("pypdfium2", reason="pip install pypdfium2: the text of the print is not read")
    pages = [" ".join(page.get_textpage().get_text_range().split()) for page in reader.PdfDocument(pdf)]
    return " ".join(pages)


def test_a_page_of_ten_thousand_nodes_is_usable_soon(visit) -> None:
    text = many_nodes(10_000)
    assert len(text.encode()) <= 6_000_000
    page = visit(text)
    ready = page.page.evaluate("performance.getEntriesByType('navigation')[0].domInteractive")
    assert ready < 1500
    page.page.locator("#q").fill("node0007")
    page.quiet()


def test_a_phone_scrolls_down_and_not_sideways(visit) -> None:
    page = visit(slow_job(), viewport=(("width", 390), ("height", 800)))
    assert page.page.evaluate("document.documentElement.scrollWidth") <= 390


WIDTHS = (390, 768, 1024, 1280)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("page", [slow_job, odd_node], ids=["slow job", "odd node"])
def test_the_navigation_fits_the_window_and_leads_to_every_section(visit, page, width: int) -> None:
    screen = visit(page(), viewport=(("width", width), ("height", 800)))
    menu = screen.page.locator(".menu summary")
    assert menu.is_visible() == (width <= 1024)
    if menu.is_visible():
        menu.click()
    links = screen.page.locator(".bar nav a:visible")
    assert links.count() == screen.page.locator("section").count() - 1
    boxes = [links.nth(at).bounding_box() for at in range(links.count())]
    assert all(box["x"] >= 0 and box["x"] + box["width"] <= width for box in boxes)
    assert screen.page.evaluate("document.documentElement.scrollWidth") <= width
    links.first.click()
    assert not screen.page.locator(".menu[open]").count()


@pytest.mark.parametrize("width", WIDTHS)
def test_the_verdict_and_what_to_do_stand_above_the_fold(visit, width: int) -> None:
    page = visit(slow_job(), viewport=(("width", width), ("height", 800)))
    for query in (".answer .headline", ".answer .do"):
        box = page.page.locator(query).first.bounding_box()
        assert box["y"] + box["height"] < 800


OUTSIDE = """all => all.filter(each => each.getBoundingClientRect().right > innerWidth).map(each => each.outerHTML)"""


@pytest.mark.parametrize("page", [slow_job, odd_node, logged_job, measured_run], ids=lambda page: page.__name__)
def test_a_telephone_shows_drawings_and_short_tables_whole(visit, page) -> None:
    screen = visit(page(), viewport=(("width", 390), ("height", 844)))
    seen = screen.page.locator(".draw, .cards td")
    assert seen.count()
    assert seen.evaluate_all(OUTSIDE) == []


def test_a_telephone_names_the_column_before_each_cell_but_a_name(visit) -> None:
    page = visit(measured_run(), viewport=(("width", 390), ("height", 844)))
    cells = page.page.locator("#t-runs tbody tr").first.locator("td")
    label = "each => getComputedStyle(each, '::before').content"
    heads = page.page.locator("#t-runs thead th").all_text_contents()
    assert [cells.nth(at).evaluate(label) for at in (0, 1)] == [f'"{heads[0].strip()} "', f'"{heads[1].strip()}"']
    page = visit(slow_job(), viewport=(("width", 390), ("height", 844)))
    assert page.page.locator(".cards td:first-child:not(.right)").first.evaluate(label) == "none"


def test_a_number_and_its_percent_sign_stay_on_one_line(visit) -> None:
    page = visit(slow_job(), viewport=(("width", 390), ("height", 844)))
    assert re.search(r"\d\u00a0%", page.page.locator("main").text_content())
    assert not re.search(r"\d %", page.page.locator("#verdict, #todo, #findings").first.text_content())
