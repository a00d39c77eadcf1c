"""The table says what is wrong, never says healthy of what was not seen, and keeps to its page."""

import re
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from tests.printed import drawn
from tests.report import machines
from tests.scanned import node_at
from topodiag.model.devices import Gpu, Nic, NumaNode
from topodiag.model.finding import Cost, Coverage, Marks, Outcome, Severity, Status, Where
from topodiag.model.links import Path
from topodiag.model.nccl_enums import PathType
from topodiag.model.node import Node
from topodiag.model.provenance import Fact, NotObserved, Origin, Topic, known
from topodiag.model.result import Result, Trouble, UnreadLine
from topodiag.report.interface import Style
from topodiag.report.node.matrix import draw_matrix
from topodiag.report.node.tree import draw_tree
from topodiag.report.table import draw_result
from topodiag.report.text import Page
from topodiag.report.words import findings_of, judged, of_hosts

ESCAPE = re.compile(r"\x1b\[[0-9;]*m")


def table(result, **style):
    """The whole page; `verbose=0` for what is printed unasked."""
    return drawn(draw_result, result, **({"verbose": 1} | style))


def machine(result):
    """The tree and the matrix as `topo show` draws them, folded."""
    page = Page(Style())
    for node in result.nodes:
        draw_tree(page, node, Marks(()))
        draw_matrix(page, node, ())
    return "\n".join(line.plain for line in page.lines)


def line_with(text, needle):
    return next(line for line in text.splitlines() if needle in line)


def test_unasked_a_healthy_node_takes_ten_lines_and_one_with_a_fault_25():
    assert len(table(machines.healthy(), verbose=0).splitlines()) <= 10
    one = replace(machines.sick(), findings=machines.sick().findings[:1])
    lines = table(one, verbose=0, exit_code=1).splitlines()
    assert len(lines) <= 25
    assert not any(line.startswith(("NUMA", "GPU0")) for line in lines)
    assert lines[1].startswith("  do         Reset the GPU")
    assert lines[-2].startswith("✖ gpu-002  1 error: GPU3 has 12 of 18 NVLinks active")
    assert lines[-1].startswith("  do         Reset the GPU")
    assert lines[-1].endswith("  exit 1")


def test_unasked_what_was_not_seen_is_a_line_and_an_input_that_was_not_read_has_its_own():
    text = table(machines.sick(), verbose=0)
    assert text.count("not observed") == 1
    made = replace(machines.sick(), not_observed=(NotObserved("x.txt", "holds nothing"),))
    assert "  not read   x.txt: holds nothing\n" in table(made, verbose=0)


def test_gpus_on_the_bus_with_a_silent_driver_are_not_judged_healthy():
    node = replace(machines.h100(), topics=frozenset({Topic.PCI, Topic.OS}), gpus=())
    text = table(Result(nodes=(node,), outcomes=machines.outcomes(node=node.host)))
    assert text.startswith("? ")
    assert "8 NVIDIA GPUs on the PCI bus, but the driver did not report on them" in " ".join(text.split())


def test_like_nvswitches_share_a_line():
    assert "4× NVSwitch" in machine(machines.healthy())
    assert table(machines.healthy(), verbose=1).count("NVSwitch  ") == 4


def test_gpus_of_unknown_numa_nodes_stand_under_their_cpus():
    result = machines.only_matrix()
    gpus = tuple(replace(gpu, numa=Fact(why="no column for it")) for gpu in result.nodes[0].gpus)
    text = table(replace(result, nodes=(replace(result.nodes[0], gpus=gpus),)))
    assert text.index("\ncpus 0-31\n") < text.index("GPU1 ") < text.index("\ncpus 32-63\n") < text.index("GPU2 ")


def test_a_device_without_affinity_stands_under_the_only_numa_node():
    nic = Nic("eth0", "0000:00:03.0", numa=known(-1))
    numa = (NumaNode(0, cpus=known("0-1")), NumaNode(1, cpus=known("")))
    text = table(Result(nodes=(Node(host="vm", nics=(nic,), numa=numa),)))
    assert line_with(text, "NUMA 0").strip() == "NUMA 0  cpus 0-1"
    assert "NUMA unknown" not in text


def test_numa_nodes_with_cpus_are_drawn_with_nothing_beside_them_too():
    numa = (NumaNode(0, cpus=known("0-3")), NumaNode(1, cpus=known("4-7")), NumaNode(2, cpus=known("")))
    text = table(Result(nodes=(Node(host="cpu", numa=numa),)))
    assert [line for line in text.splitlines() if "NUMA" in line] == ["NUMA 0  cpus 0-3", "NUMA 1  cpus 4-7"]


def test_pcie_distance_between_gpus_built_with_nvlink_is_said_to_be_that_alone():
    node = machines.h100()
    blind = replace(
        node,
        gpus=tuple(replace(gpu, nvlinks=(), nvlink_note=Fact(why="no answer")) for gpu in node.gpus),
        smi_matrix={},
        paths={(a.label, b.label): Path(PathType.SYS) for a in node.gpus for b in node.gpus if a is not b},
    )
    assert "over PCIe alone" in table(Result(nodes=(blind,)), width=120)
    assert "over PCIe alone" not in table(Result(nodes=(node,)), width=120)


def test_eight_gpus_and_ten_nics_fit_eighty_columns():
    node = node_at("fixture:dgx-h100-healthy")
    text = table(Result(nodes=(replace(node, nics=node.nics[:10]),)))
    assert max(map(cell_len, text.splitlines())) <= 80
    assert "     0    1    2    3    4    5    6    7    8    9\n" in text


def test_seventy_two_gpus_fold():
    text = machine(machines.large())
    assert "GPU0 … GPU35" in text
    assert "72 GPUs, 2556 pairs: 2556 NV18" in text
    assert len(text.splitlines()) < 30


def test_a_pair_that_a_finding_names_is_marked_without_colour_too():
    node = machines.sick_h100()
    facts = {pair: known("NV12" if "GPU3" in pair else "NV18") for pair in node.smi_matrix if pair[1].startswith("GPU")}
    text = table(Result(nodes=(replace(node, smi_matrix=facts),), findings=machines.SICK_FINDINGS))
    assert line_with(text, "GPU0 -").split()[4] == "NV12!"


def test_findings_show_observed_beside_expected_cost_evidence_and_numbered_fix():
    text = table(machines.sick())
    body = text[text.index("✖ NVL001  GPU3 has") : text.index("✖ NIC001  ")]
    assert [line[:12].strip() for line in body.splitlines() if line[2:3].isalpha() and line.startswith("  ")] == [
        "where", "seen", "expected", "cost", "evidence", "fix",
    ]  # fmt: skip
    assert "159.4 GB/s lost (33 %)" in body
    assert "commands/nvidia-smi-nvlink-s.txt:71  Link 12: <inactive>" in body
    assert "  fix        1. Reset the GPU" in body
    assert "topodiag explain NVL001" in body


def test_partial_coverage_is_said():
    found = machines.finding(coverage=Coverage(61, 64, "ranks"))
    assert "coverage   61 of 64 ranks" in table(Result(findings=(found,)))


def test_findings_of_one_kind_and_fix_share_the_fix_and_are_folded():
    many = tuple(machines.finding(message=f"GPU{i} is short") for i in range(6))
    text = table(Result(findings=many), verbose=0)
    assert text.count("Reset the GPU") == 1
    assert [f"GPU{i} is short" in text for i in range(6)] == [True] * 5 + [False]
    assert "… and 1 more like this" in text
    assert "GPU5 is short" in table(Result(findings=many), verbose=1)


def test_places_are_folded():
    where = Where(gpus=("GPU3",), links=("GPU3 link 4", "GPU3 link 5", "GPU3 link 13"))
    assert "where      GPU3 links 4-5,13\n" in table(Result(findings=(machines.finding(where=where),)))
    where = Where(nodes=("a",), gpus=("GPU0", "GPU1", "GPU2"), nics=("mlx5_0",))
    assert "where      GPU0-2 · mlx5_0\n" in table(Result(findings=(machines.finding(where=where),)))


def test_many_nodes_get_a_head_line_each_and_no_drawing():
    nodes = tuple(machines.h100(f"gpu-{i:03}") for i in range(6))
    text = table(Result(nodes=nodes, outcomes=sum((machines.outcomes(node=n.host) for n in nodes), ())), verbose=0)
    *heads, last = [line for line in text.splitlines() if "no faults found" in line]
    assert len(heads) == 6
    assert last.startswith("✔ gpu-[000-005]")  # the answer again
    assert "NUMA 0" not in text


def test_each_of_many_nodes_gets_what_names_it_or_none():
    """What is asked of a result of one host is what is asked of it for that host."""
    sick, healthy = machines.sick(), machines.healthy()
    shared = replace(sick.findings[0], where=Where(nodes=("gpu-001", "gpu-002")))
    whole = replace(sick.findings[0], where=Where())
    both = replace(
        sick,
        nodes=(*sick.nodes, *healthy.nodes),
        findings=(whole, *sick.findings, shared),
        outcomes=(*sick.outcomes, *healthy.outcomes),
        unexplained=tuple(Trouble("kernel log", "no", host) for host in ("gpu-002", "", "gpu-001", "gpu-002")),
    )
    of_host = of_hosts(both)
    for node in (*both.nodes, Node("gpu-003")):
        own = of_host(node.host)
        assert own.findings == findings_of(both, node)
        assert own.troubles() == both.troubles(node.host)
        assert judged(own) == judged(both, node.host)
    assert of_host("gpu-001").findings == (whole, shared)


def test_colour_changes_no_character():
    assert ESCAPE.sub("", table(machines.sick(), color=True)) == table(machines.sick())


@pytest.mark.parametrize("make", [machines.healthy, machines.sick, machines.without_gpus, machines.only_matrix])
@pytest.mark.parametrize("width", [40, 80, 120, 160])
def test_ascii_is_ascii_and_lines_keep_to_the_width(make, width):
    plain = table(make(), ascii=True, width=width)
    assert plain.isascii()
    for text in (plain, table(make(), width=width)):
        assert max(map(cell_len, text.splitlines())) <= width


def test_the_plain_ascii_page_of_a_small_machine():
    expected = """\
? topo.txt  no faults found in the little that was seen  (2 of 45 checks ran)
  4 GPUs | 2 NICs

NUMA 0  cpus 0-31
|- GPU0    NV4 to 1 of 3 peers
|- GPU1    NV4 to 1 of 3 peers
`- mlx5_0
NUMA 1  cpus 32-63
|- GPU2    NV4 to 1 of 3 peers
|- GPU3    NV4 to 1 of 3 peers
`- mlx5_1
no PCI tree in the evidence: devices stand under their NUMA node or CPUs

     GPU                 mlx5_
     0   1   2   3       0   1
GPU0 -   NV4 SYS SYS     PHB SYS
GPU1 NV4 -   SYS SYS     PHB SYS
GPU2 SYS SYS -   NV4     SYS PHB
GPU3 SYS SYS NV4 -       SYS PHB
NV# bonded NVLinks | PHB through the CPU | SYS across sockets
"""
    assert table(machines.only_matrix(), ascii=True).startswith(expected)


ANY = st.text(max_size=40) | st.sampled_from(
    ["\x1b[31mred", "[bold]x[/bold]", "a\u202eb", "\ud800", "漢字" * 9, "\r\n\t", "e" + "\u0301" * 9]
)
NUMBERS = st.integers(-(2**64), 2**64)


@st.composite
def hostile(draw):
    bus = draw(ANY)
    loop = machines.pci(bus, parent=bus, gen=draw(NUMBERS), width=draw(NUMBERS), numa=draw(NUMBERS))
    gpu = Gpu(draw(NUMBERS), bus, name=known(draw(ANY)), numa=known(draw(NUMBERS)), lost=known(draw(ANY)))
    nic = Nic(draw(ANY), bus, part=known(draw(ANY)), ports=machines.h100().nics[0].ports)
    word = draw(ANY)
    node = Node(
        draw(ANY),
        system=known(draw(ANY)),
        pci={bus: loop},
        gpus=(gpu, Gpu(1)),
        nics=(nic,),
        smi_matrix={(gpu.label, "GPU1"): known(word), (gpu.label, nic.name): known(word)},
        topics=frozenset({Topic.GPUS}),
    )
    found = machines.finding(
        message=draw(ANY),
        observed=draw(ANY),
        where=Where(nodes=(node.host,), gpus=(draw(ANY), gpu.label), links=(draw(ANY), f"GPU1 link {draw(ANY)}")),
        cost=Cost(draw(st.floats()), draw(st.floats()), draw(ANY)),
        evidence=(Origin(draw(ANY), 1, draw(ANY)),),
        fix=(draw(ANY),),
    )
    return Result(
        nodes=(node,),
        findings=(found,),
        outcomes=machines.outcomes((found,), node=node.host),
        not_observed=(NotObserved(draw(ANY), draw(ANY), True),),
        unread=(UnreadLine(draw(ANY), 1, draw(ANY), draw(ANY)),),
    )


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(hostile(), st.sampled_from([40, 80, 133]), st.booleans())
def test_no_content_raises_escapes_or_overflows(result, width, ascii_only):
    text = table(result, width=width, ascii=ascii_only)
    assert all(char.isprintable() or char == "\n" for char in text if not "\u0300" <= char <= "\u036f")
    assert not ascii_only or text.isascii()
    assert max(cell_len(line) for line in text.split("\n")) <= width


def test_severities_sort_the_signs():
    notes = (machines.finding(severity=Severity.INFO),)
    assert table(Result(nodes=(machines.h100("gpu-002"),), findings=notes)).startswith("● gpu-002  1 note")


def test_a_check_with_a_finding_is_not_among_those_that_found_nothing():
    made = machines.sick()
    elsewhere = Outcome("NVL001", Status.CLEAN, "gpu-003")
    text = table(replace(made, outcomes=(*made.outcomes, elsewhere)))
    assert "NVL001" in text
    assert "NVL001" not in text.partition("found nothing")[2].partition("not applicable")[0]


# --- the last lines of a report repeat its answer; notes are one line each ------------------------------------


def lines_of(result, **style):
    return drawn(draw_result, result, **style).splitlines()


def test_the_last_two_lines_are_the_verdict_and_what_to_do():
    first, *_, verdict, action = lines_of(machines.sick(), width=160)
    assert first.startswith(verdict)
    assert action.startswith("  do         ")


def test_quiet_reports_and_short_ones_repeat_nothing():
    lines = lines_of(machines.sick(), quiet=True)
    assert sum(line.startswith("✖") and "error" in line for line in lines) == 1
    page = Page(Style())
    page.add("", "one line")
    page.note_answer("one line")
    page.repeat_answers()
    assert [line.plain for line in page.lines] == ["one line"]


def test_answers_alike_are_folded_the_worst_first():
    page = Page(Style(width=100))
    for number in range(11):
        page.add("", f"row {number}")
    for number in range(1, 5):
        bad = number == 3
        sign, hue, words = ("✖", "error", "1 error") if bad else ("✔", "ok", "no faults found")
        page.note_answer(words, sign=sign, hue=hue, name=f"gpu{number}")
    page.repeat_answers()
    assert page.lines[-1].plain == "✖ gpu3  1 error · ✔ gpu[1-2,4]  no faults found"


def test_a_note_is_one_line_unless_the_report_is_verbose():
    note = machines.finding(severity=Severity.INFO, message="nothing to fix", fix=("leave it",))
    made = replace(machines.sick(), findings=(note,))
    short, whole = lines_of(made, width=120), lines_of(made, width=120, verbose=1)
    assert [line for line in short if "nothing to fix" in line]
    assert not [line for line in short if "leave it" in line]
    assert [line for line in short if line.endswith("  (-v: in full)")]
    assert [line for line in whole if "leave it" in line]
