"""Any text is taken by each function that reads one without an exception, and what comes of it keeps its promise."""

import string
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.checks.env.test_rules import conf, judge
from tests.checks.shared.test_shared import names as of_settings
from tests.evidence.live.test_step_times import megatron
from tests.evidence.network.test_rdma import measured
from tests.fuzz.readers import readers, seeds_of
from topodiag.evidence.assignments import assigned
from topodiag.evidence.draft import NodeDraft
from topodiag.evidence.host.systemctl import units
from topodiag.evidence.intake.fanout import parts_of
from topodiag.evidence.intake.genre import is_json, program_text
from topodiag.evidence.interface import Blob, Parsed
from topodiag.evidence.layout.job_settings import read_arguments
from topodiag.evidence.live.step_lines import read_line
from topodiag.evidence.live.step_times import read_steps
from topodiag.evidence.metrics_text import samples_of
from topodiag.evidence.nccl_log.grammar.job_lines import end_of, task_of
from topodiag.evidence.nccl_log.grammar.prefix import application, clean, records
from topodiag.evidence.network import rdma_words
from topodiag.evidence.network.perftest import pair_runs
from topodiag.evidence.nvidia.smi_matrix import read_matrices
from topodiag.evidence.page import Page
from topodiag.evidence.pasted_files import shown_files
from topodiag.evidence.signatures.wrappers import of_one_host, unwrap
from topodiag.evidence.table import tables_of
from topodiag.evidence.tree import read_tree
from topodiag.evidence.yaml_values import load_yaml
from topodiag.hardware import catalog, xids
from topodiag.model.busid import normalise_bus_id
from topodiag.model.cpulist import MAX_CPU, parse_cpulist
from topodiag.model.errors import InputError, TopodiagError
from topodiag.model.finding import Status
from topodiag.nccl import numbers
from topodiag.nccl.topo.hca_list import HcaFilter
from topodiag.words.colours import without_colours
from topodiag.words.node_sets import NodeSetError, expand
from topodiag.words.unfilled import without_unfilled

ANY = st.text(max_size=400)
BYTES = st.binary(max_size=300)
JOURNAL = "Nov 15 14:15:47 n1 systemd[1]: "
GENRES = {"", "the source of a program", "a list of changes", "a handbook"}


def of(alphabet: str) -> st.SearchStrategy[str]:
    return st.text(alphabet, max_size=400)


def page(text: str) -> Page:
    return Page(Blob("any", text.encode()), NodeDraft())


def node_set(text: str) -> bool:
    """Some nodes and no more than asked for, or refused in one line."""
    try:
        return 0 < len(expand(text, 1000)) <= 1000
    except NodeSetError as error:
        return "\n" not in str(error)


def plain_or_refused(text: str) -> bool:
    """YAML that is read, or refused in one line."""
    try:
        load_yaml(Blob("any", text.encode()))
    except InputError as error:
        return "\n" not in str(error)
    return True


TAKEN: dict[str, tuple[st.SearchStrategy[Any], Callable[[Any], object]]] = {
    "JSON or none": (of('[]{}",:0123456789truefalsn \n\\-.eE'), is_json),
    "labels of a launcher": (ANY, of_one_host),
    "a line in wrappers": (ANY, unwrap),
    "training arguments": (
        ANY, lambda text: read_arguments(f"  num_layers .... {text}\n  hidden_size ....{text}", "any"),
    ),
    "steps": (ANY, lambda text: read_steps(megatron(range(1, 5)) + text, "any")),
    "a line of a step": (ANY, read_line),
    "the end of a job": (ANY, end_of),
    "the task of a line": (ANY, task_of),
    "lines of an application": (BYTES, lambda raw: application(clean(raw))),
    "records of NCCL": (BYTES, lambda raw: list(records(clean(raw)))),
    "tests of pairs": (ANY, lambda text: pair_runs(text + measured(("ws-1", "ws-2", "391.84")), text)),
    "metrics": (BYTES, lambda raw: list(samples_of(Blob("any", raw), ""))),
    "files that are shown": (ANY, lambda text: list(shown_files(f"/sys/a:{text}\ncat /proc/{text}"))),
    "matrices of nvidia-smi": (of(string.printable + "\x1bé|"), lambda text: read_matrices(page(text))),
    **{f"words of RDMA: {name}": (ANY, getattr(rdma_words, name)) for name in (
        "port_state", "phys_state", "rate", "verbs_speed", "verbs_width", "mtu", "lid", "guid", "link_layer",
        "transport", "firmware", "bus_id_in",
    )},
    "a product": (ANY, catalog.gpu_by_name),
    "a system": (ANY, catalog.system_by_product),
    "a type of adapter": (ANY, catalog.nic_by_hca_type),
    "a kind of link": (ANY, catalog.latency_us),
    "a tree of files": (BYTES, lambda raw: read_tree(Blob("any", raw), Parsed())),
    **{f"an Xid: {name}": (ANY, getattr(xids, name)) for name in ("recovery_of", "process_of", "link_of")},
    "an error of NVLink": (ANY, lambda text: (xids.nvlink_of(149, text), xids.sxid_severity(20_034, text))),
}  # fmt: skip
"""Functions that answer on any text; a text of some signs where others are passed over."""
KEPT: dict[str, tuple[st.SearchStrategy[str], Callable[[str], bool]]] = {
    "units of a journal": (ANY, lambda text: isinstance(units(page(f"{JOURNAL}{text}")), tuple)),
    "parts of a fan-out": (ANY, lambda text: all(host and own.strip() for host, own in parts_of(text).items())),
    "genre": (ANY, lambda text: program_text(text) in GENRES),
    "settings": (ANY, lambda text: all(name for name, _ in assigned(text, text[::-1]))),
    "tables": (
        of('GPU rankstate:=,|\t\n{}[]"0129.'),
        lambda text: all(table.rows and table.columns for table in tables_of(Blob("any", text.encode()))),
    ),
    "a GID": (ANY, lambda text: rdma_words.gid(0, text, text) is None or ":" in text),
    "a processor": (ANY, lambda text: catalog.smp_gbs(text, text) > 0),
    "a PCI function": (ANY, lambda text: (name := normalise_bus_id(text)) is None or normalise_bus_id(name) == name),
    "processors": (of("0123456789-, "), lambda text: all(cpu < MAX_CPU for cpu in parse_cpulist(text) or ())),
    "a long number": (ANY, lambda text: -(1 << 63) <= numbers.c_long(text) < 1 << 63),
    "a number": (ANY, lambda text: -(1 << 31) <= numbers.c_int(text) < 1 << 31),
    "a hexadecimal number": (ANY, lambda text: 0 <= numbers.c_hex(text) < 1 << 64),
    "a packed bus id": (ANY, lambda text: 0 <= numbers.bus_id(text) < 1 << 63),
    "a number with a point": (ANY, lambda text: abs(numbers.c_float(text)) < 4e38),
    "a list of adapters": (ANY, lambda text: HcaFilter(text).takes(text[:9], len(text) % 9) in (True, False)),
    "colours": (
        of("\x1b[]0;1m(B\x07\\0a\n"),
        lambda text: (
            without_colours(text.encode()) == without_colours(text).encode()
            and without_colours(text).count("\n") == text.count("\n")
        ),
    ),
    "what is not filled in": (ANY, lambda text: without_unfilled(text).count("\n") == text.count("\n")),
    "a set of nodes": (of("nabx[]-,/0123456789 @*&!^%"), node_set),
    "YAML": (of("abc&*<:,-[]{}'\"\n 0123456789.!|>"), plain_or_refused),
    "a line of nccl.conf": (ANY, lambda text: judge(conf(text)).check == "ENV002"),
    "a setting": (ANY, lambda text: of_settings(f"NCCL_{text}={text}").status in (Status.FINDING, Status.CLEAN)),
}
"""Functions whose answer on any text is of a kind."""


@pytest.mark.parametrize("name", TAKEN)
@given(data=st.data())
def test_any_text_is_taken(name: str, data: st.DataObject) -> None:
    texts, take = TAKEN[name]
    take(data.draw(texts))


@pytest.mark.parametrize("name", KEPT)
@given(data=st.data())
def test_what_comes_of_any_text_is_of_its_kind(name: str, data: st.DataObject) -> None:
    texts, holds = KEPT[name]
    assert holds(data.draw(texts))


# --- Any bytes among the text of a reader, and its lines in any order: it reads them or refuses them in one line


NAMES = [name for name in readers() if name.startswith(("source ", "layout ", "cluster "))] + [
    "file affinity", "file device pairs", "file free GPUs", "file sentences", "kind flight-recorder",
    "kind nccl-diagnostics", "kind nccl-inspector", "kind nccl-profiler-trace", "kind nccl-ras", "kind nccl-tests",
    "kind rank-groups", "kind rank-map", "kind stack-dump", "kind sweep-plan", "kind watch",
]  # fmt: skip
"""The readers of one text; what gathers and judges several is in test_fuzz.py."""
MOST_SEED = 1500


def seed(name: str) -> bytes:
    return seeds_of(name)[0][:MOST_SEED]


@pytest.mark.parametrize("name", NAMES)
@given(data=st.data(), noise=st.binary(max_size=300), at=st.integers(0, MOST_SEED), cut=st.integers(0, 40))
def test_any_bytes_among_its_lines_in_any_order_are_read_or_refused(
    name: str, data: st.DataObject, noise: bytes, at: int, cut: int
) -> None:
    lines = seed(name).splitlines(keepends=True)
    text = b"".join(data.draw(st.just(lines) | st.lists(st.sampled_from(lines), max_size=40)))[: -cut or None]
    with suppress(TopodiagError):
        readers()[name].read(text[:at] + noise + text[at:])
