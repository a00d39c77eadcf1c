"""The pages and the JSON of `topo`: the sentences, the keys and units of the reference."""

import json
from dataclasses import replace
from functools import cache
from importlib.resources import files
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from tests.tables import examples
from tests.valid import assert_valid
from topodiag.app.case.topology import open_topology, predict_topology
from topodiag.app.topo import WhatIf, what_if
from topodiag.model.nccl_tree import Element
from topodiag.nccl.prediction import Choice, PredictedGraph, Prediction
from topodiag.nccl.topo import changes
from topodiag.nccl.topo.printed import device_names
from topodiag.report.documents.from_model import plain
from topodiag.report.interface import Style
from topodiag.report.text import Page
from topodiag.report.topo.predict import draw_prediction, predict_json, ranges_of, spell_graph, spell_order
from topodiag.report.topo.what_if import draw_what_if, moved_paths, sentence
from topodiag.words.places import base_name

FOLDER = Path(__file__).resolve().parents[3] / "fixtures" / "topo"
NAMES = {f"GPU/0-{at}": f"GPU{at}" for at in range(4)} | {f"NET/0-{at}": f"mlx5_{at}" for at in range(4)}


@cache
def topology(name="dgx-h100-healthy"):
    return open_topology(str(FOLDER / name / "topo.xml"))


def graph(number, channels, gbs, pattern=4):
    return PredictedGraph(number, pattern, 0, channels, gbs, gbs, "NVL", "PIX", 1)


def prediction(time=1000.0, algorithm="Ring", **more):
    choice = Choice("AllReduce", 1 << 30, algorithm, "Simple", time, 100.0)
    graphs = more.pop("graphs", (graph(0, 8, 30.0),))
    return replace(Prediction("2.28", 1, True, graphs=graphs, choices=(choice,), ranks=8, nccl_nodes=1), **more)


def answer(before, after, words="GPU3 at x4"):
    return WhatIf(1 << 30, (changes.Change(words),), before, after)


def paths(**pairs):
    """`a01="NVL 370"`: the path between GPU 0 and GPU 1, both ways; n: from the GPU to the NIC."""
    table = {f"GPU/0-{at}": {} for at in range(4)}
    for key, text in pairs.items():
        kind, gbs = text.split()
        a, b = f"GPU/0-{key[1]}", ("GPU/0-" if key[0] == "a" else "NET/0-") + key[2]
        for one, other in ((a, b), (b, a)):
            table.setdefault(one, {})[other] = (2, float(gbs), kind)
    return prediction(paths=table)


ALL = {f"a{i}{j}": "NVL 360" for i in range(4) for j in range(i + 1, 4)}


def test_paths_that_change_alike_round_one_gpu_are_one_line():
    after = paths(**ALL | {f"a{min(at, 3)}{max(at, 3)}": "NVL 240" for at in range(3)})
    assert moved_paths(paths(**ALL), after, NAMES) == ["GPU3 to all other GPUs: NVL 360 -> 240 GB/s"]


def test_another_type_is_told_and_some_peers_are_named():
    after = paths(**ALL | {"a03": "PHB 48", "a13": "PHB 48"})
    assert moved_paths(paths(**ALL), after, NAMES) == ["GPU3 to GPU0-1: NVL 360 -> PHB 48 GB/s"]


def test_many_pairs_without_a_common_device_are_one_line():
    before = paths(**{f"n{at}{at}": "PIX 48" for at in range(4)})
    after = paths(**{f"n{at}{at}": "PHB 48" for at in range(4)})
    assert moved_paths(before, after, NAMES) == ["GPU0-3 to mlx5_0-3, one each: PIX 48 -> PHB 48 GB/s"]


def test_equal_paths_are_no_change_and_gone_devices_are_not_told():
    routes = paths(a01="NVL 360")
    routes.paths.pop("GPU/0-1")
    assert moved_paths(paths(**ALL), paths(**ALL), NAMES) == []
    assert moved_paths(paths(a01="NVL 360"), replace(routes, paths={}), NAMES) == []


def test_labels_without_a_name_stand_as_nccl_prints_them():
    after = paths(a01="NVL 240")
    assert moved_paths(paths(a01="NVL 360"), after, {}) == ["GPU/0-0 to GPU/0-1: NVL 360 -> 240 GB/s"]


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        (prediction(), prediction(), "takes as long as before (1 ms by NCCL's model): no loss to expect."),
        (prediction(), prediction(1500.0), "takes 1.5 ms instead of 1 ms (50 % longer)"),
        (prediction(), prediction(800.0), "(20 % less)"),
        (prediction(), prediction(3000.0), "(3.0 times as long)"),
        (prediction(), prediction(1500.0, graphs=(graph(0, 1, 20.0),)),
         "because the ring search finds 1 channel of 20 GB/s where it found 8 of 30"),
        (prediction(algorithm="NVLS", graphs=(graph(0, 8, 30.0), graph(3, 8, 40.0, 5))),
         prediction(2000.0, graphs=(graph(0, 8, 30.0), graph(3, 0, 0.0, 5))),
         "because NCCL finds no NVLS channel any more and Ring runs instead of NVLS."),
        (prediction(), prediction(accepted=False, why="no"), "NCCL 2.28 no longer starts on this machine: no."),
        (prediction(accepted=False, why="no"), prediction(), "already refuses the topology as it is: no."),
        (prediction(choices=()), prediction(), "no all-reduce can be compared."),
    ],
)  # fmt: skip
def test_the_sentence_says_what_happened_and_why(before, after, words):
    assert words in sentence(answer(before, after))


def test_a_graph_is_spelt_with_its_product_and_one_without_channels_as_not_found():
    made = prediction(graphs=(graph(0, 8, 30.0), graph(1, 0, 0.0, 1)))
    assert [spell_graph(made, number) for number in (0, 1, 2)] == ["8 × 30 = 240 GB/s, NVL", "not found", ""]
    assert spell_graph(replace(made, nccl_nodes=2), 0) == "8 × 30 = 240 GB/s, NVL, PIX"


def test_neighbouring_sizes_of_one_choice_are_one_range():
    def choice(size, algorithm):
        return Choice("AllReduce", size, algorithm, "LL", 1.0, 1.0)

    runs = ranges_of([choice(8, "Ring"), choice(16, "Ring"), choice(32, "Tree"), choice(64, "Ring")])
    assert [[choice.bytes for choice in run] for run in runs] == [[8, 16], [32], [64]]


def test_an_order_names_nics_and_numbers_gpus():
    order = ["NET/0-0", "GPU/0-0", "GPU/0-1", "NET/0-3"]
    assert spell_order(order, NAMES) == "mlx5_0 GPU 0 1 mlx5_3"
    assert spell_order(["GPU/0-1b000"], {}) == "0-1b000"


def test_names_come_from_the_tree_and_doubtful_ones_are_left_out():
    names = device_names(topology().tree)
    assert (names["GPU/0-61000"], names["NET/0-3"]) == ("GPU3", "mlx5_5")
    nets = tuple(Element("net", (("name", name), ("dev", "0"))) for name in ("one", "other"))
    cpu = Element("cpu", (("numaid", "0"),), (Element("nic", (), nets),))
    assert device_names(Element("system", (), (cpu,))) == {}
    assert device_names(topology("mnnvl-two-trays").tree) == {}


@pytest.mark.parametrize(("path", "name"), [("a/b/topo.xml", "topo.xml"), ("-", "-"), ("/", "/"), ("dir/", "dir")])
def test_a_path_is_headed_by_its_last_part(path, name):
    assert base_name(path) == name


@pytest.mark.parametrize("name", ["dgx-h100-healthy", "dgx1v-mesh", "gb200-tray-healthy", "prolog", "no-gpu"])
@pytest.mark.parametrize("width", [40, 61, 80, 200])
def test_a_prediction_fits_any_page(name, width):
    made = predict_topology(topology(name), nodes=2, explain=True)
    page = Page(Style(width=width, verbose=1))
    draw_prediction(page, made, str(FOLDER / name / "topo.xml"), names=device_names(topology(name).tree), explain=True)
    assert all(cell_len(line.plain) <= width for line in page.lines)


CHANGES = st.one_of(
    st.builds(lambda gpu, n: changes.down(f"nvlink:GPU{gpu}:{n}"), st.integers(0, 7), st.integers(1, 3)),
    st.builds(lambda gpu, lanes: changes.width(f"GPU{gpu}={lanes}"), st.integers(0, 7), st.sampled_from([1, 4, 8])),
    st.builds(lambda nic, rate: changes.rate(f"mlx5_{nic}={rate}"), st.sampled_from([0, 3, 9]), st.integers(1, 400)),
    st.builds(changes.off, st.sampled_from(sorted(changes.OFF))),
)


@settings(max_examples=12)
@given(st.lists(CHANGES, min_size=1, max_size=3), st.sampled_from([1, 2]), st.integers(40, 120))
def test_whatever_changes_there_is_a_sentence_and_a_page_that_fits(chosen, nodes, width):
    found = what_if(topology(), chosen, nodes=nodes)
    page = Page(Style(width=width))
    draw_what_if(page, found, "topo.xml")
    assert all(cell_len(line.plain) <= width for line in page.lines)
    assert sentence(found).startswith("With ")
    assert sentence(found).endswith(".")


SCHEMA = json.loads((files("topodiag.report") / "schema" / "predict-1.0.schema.json").read_text())


def made(name, **asked):
    topology = open_topology(str(FOLDER / name / "topo.xml"))
    return json.loads(json.dumps(plain(predict_json(predict_topology(topology, **asked)))))


@examples("name", "asked")
def test_every_kind_of_prediction_is_valid(name, asked):
    assert_valid(made(name, **asked), SCHEMA)


def test_the_schema_notices_a_missing_key_and_a_path_without_its_type():
    broken = made("dgx-h100-healthy")
    del broken["graphs"][0]["orders"]
    with pytest.raises(jsonschema.ValidationError):
        assert_valid(broken, SCHEMA)
    broken = made("dgx-h100-healthy")
    row = next(iter(broken["paths"].values()))
    row[next(iter(row))] = [1, 2.0]
    with pytest.raises(jsonschema.ValidationError):
        assert_valid(broken, SCHEMA)


def test_the_keys_are_those_that_tools_rely_on():
    found = made("dgx-h100-healthy", nodes=2)
    assert {"accepted", "why", "system", "paths", "graphs", "channels", "tuning", "choices"} <= set(found)
    assert found["paths"]["GPU/0-1b000"]["NET/0-0"][1:] == [48.0, "PXB"]
    assert set(found["channels"]) == {"coll", "collnet", "nvls", "p2p", "p2p_per_peer"}
    assert {"collective", "bytes", "algorithm", "protocol"} <= set(found["choices"][0])
    latency, gbs = found["tuning"]["AllReduce"]["Ring"]["Simple"]
    assert 0 < latency < 1000
    assert 0 < gbs < 1000


def test_a_refusal_says_why_and_where():
    found = made("prolog")
    assert (found["accepted"], found["line"]) == (False, 1)
    assert "expected >" in found["why"]
    assert found["channels"] is None
