"""What DCGM says of a GPU's health, in `dcgmi health`, `dcgmi diag` or the log of a program that watches with it.

    Detected clocks event due to thermal violation in GPU 2. Verify that the cooling on this machine is functional ...
    GPU 3 Thermal violations totaling 12.4 seconds started at 30.0 seconds into the test
    Bandwidth of GPU 3 in direction h2d of 11.40 did not exceed minimum required bandwidth of 20.00.
    | PCIe                      | Fail - GPU: 3                                  |

Each sentence counts by itself; a table breaks it over lines. Sentences on memory and links are in the catalogue. What
DCGM calls a failure of NVLink or IMEX need be none: a card without a bridge has all links down, a tray without a job
needs no IMEX channel. These are not read. Sentences: DCGM, dcgmlib/dcgm_errors.h (DCGM_FR_CLOCKS_EVENT_THERMAL).

`dcgmi nvlink --link-status`: one letter for each NVLink of each GPU; `dcgmi nvlink --errors`: its counters.

    GPUs:
        gpuId 0:
            U U U U U U D U U U U U U U U U U U
    Key: Up=U, Down=D, Disabled=X, Not Supported=_

    | GPU 4                                                                        |
    | Link 3                      | Replay Error              30112                |

A card without a bridge has all links down. The links of NVSwitches are left out: no other source numbers them so.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from topodiag.evidence.draft import Entity
from topodiag.evidence.interface import MAX_LINE
from topodiag.evidence.page import Line, OfPage, Page
from topodiag.words.own_data import patterns

MAX_INDEX = 255
MAX_RECORDS = 10_000

FAILED = "failed_tests"
"""The field of a GPU that holds the sentences on its failed tests."""
_LIKE = patterns("evidence/nvidia/lines", "dcgm")
_REASONS = {"thermal": "hw_thermal_slowdown", "power": "hw_power_brake_slowdown"}
PASSED = "passed_tests"
"""The field of a node that holds the tests which all its GPUs passed."""
_OF_GPU = ("pcie", "mem", "diagnostic", "stress", "power", "bandwidth", "pulse", "remap", "retire", "context", "eud")
"""In names of tests that a GPU passes or fails; others (denylist, libraries, permissions) are of the installation."""


_Said = tuple[int, str, str]
"""Of one sentence: the GPU, the field of the model, its value. Of all GPUs the index is -1."""


class Dcgm(OfPage):
    """Clocks that are held down, memory errors and failed tests, by DCGM's sentences and tables."""

    def recognises(self, head: str) -> bool:
        """A report in which all pass is one as well: nothing is held against the GPUs."""
        if _LIKE["report"].search(head) is not None or _LIKE["no_time"].search(head) is not None:
            return True
        return any(True for _ in _sentences(enumerate(head.split("\n"), 1)))

    def read_page(self, page: Page) -> None:
        held: set[int] = set()
        """GPUs whose clocks are held down, which says why a test failed."""
        tests: dict[tuple[str, int], dict[str, Line]] = {}
        for number, text, (index, name, value) in islice(_sentences(page.blob.lines()), MAX_RECORDS):
            line = Line(page, number, text)
            page.mark(number)
            if name in (FAILED, PASSED):
                tests.setdefault((name, index), {}).setdefault(value, line)
            else:
                held.add(index)
                line.put(page.draft.gpu(index=index), **{name: (value,)})
        for (name, index), lines in tests.items():
            if index not in held:
                entity = page.draft.single("node") if name == PASSED else page.draft.gpu(index=index)
                entity.offer(name, tuple(lines), next(iter(lines.values())).origin)


def _sentences(lines: Iterator[tuple[int, str]]) -> Iterator[tuple[int, str, _Said]]:
    """The sentences of a text; one that a table broke is joined with the cells above it."""
    before, test = "", ""
    for number, whole in lines:
        text = whole[:MAX_LINE].strip(" \t>")
        cells = [cell.strip() for cell in text.strip("|").split("|")]
        row = text.startswith("|") and len(cells) == 2
        name, cell = (cells[0].strip("-"), cells[1]) if row else ("", text)
        if name:
            test, before = name, "" if _LIKE["fail"].match(cell) else before
        health_lines = [(text, one) for one in _failures(test, cell)] if row else []
        for sentence in dict.fromkeys((cell, f"{before} {cell}")):
            health_lines = health_lines or [(sentence, one) for one in _clocks(sentence)]
        yield from ((number, shown, one) for shown, one in health_lines if one[0] <= MAX_INDEX)
        before = "" if health_lines else f"{before} {cell}"[-MAX_LINE:] if row and not name else cell


def _failures(test: str, cell: str) -> Iterator[_Said]:
    """The GPUs that a row of the table of a diagnostic says failed, or that all passed."""
    if not any(word in test.lower() for word in _OF_GPU):
        return
    if cell == "Pass - All":
        yield -1, PASSED, test
    failed = _LIKE["fail"].match(cell)
    for index in (failed["one"] or failed["several"] or "").split(",") if failed is not None else ():
        if index.strip().isdigit() and len(index.strip()) <= 3:
            yield int(index), FAILED, f"the test {test} failed"


def _clocks(text: str) -> Iterator[_Said]:
    """The clocks that a sentence says are held down."""
    clocks = _LIKE["clocks"].search(text)
    if clocks is not None and _LIKE["no_time"].search(text) is None:
        index, reason = int(clocks[2] or clocks[3] or clocks[6]), (clocks[1] or clocks[4] or clocks[5]).lower()
        yield index, "throttle", _REASONS[reason]


_COUNTERS = {"CRC FLIT": "crc_flit", "CRC Data": "crc_data", "Replay": "replay", "Recovery": "recovery"}
_STATES = {"U": "active", "D": "inactive"}
"""In the model's words. Disabled, and not supported, are no state of a link that should be up."""


class DcgmNvlink(OfPage):
    """States of NVLinks by `dcgmi nvlink`."""

    def read_page(self, page: Page) -> None:
        gpu: Entity | None = None
        for line in page.bare_lines():
            text = line.text
            if gpu is not None and (errors := _LIKE["errors"].match(text)) is not None:
                line.count(gpu.child("nvlink", int(errors[1])), _COUNTERS[errors[2]], int(errors[3]))
            elif text.startswith(("gpuId ", "GPU ")) and (index := text.split()[1].rstrip(":")).isdecimal():
                gpu = page.draft.gpu(index=int(index)) if len(index) < 4 and int(index) <= MAX_INDEX else None
            elif gpu is not None and (letters := text.split()) and set(letters) <= {*"UDX_"}:
                page.mark(line.number)
                for link, letter in enumerate(letters[:64]):
                    if letter in _STATES:
                        line.put(gpu.child("nvlink", link), state=_STATES[letter])
                gpu = None
            elif text.strip("+-= |"):
                gpu = None
