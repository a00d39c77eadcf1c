"""Files of clusters, and what kubectl prints."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.evidence.cluster.cluster_texts import facts, levels_of, listed, node, refused
from tests.tables import examples, parts, texts, with_texts
from topodiag.evidence.cluster import slurm
from topodiag.evidence.cluster.files import read_cluster
from topodiag.evidence.cluster.kubernetes import DOMAINS, TABLES, read_pods
from topodiag.evidence.intake.kind_of_file import kind_of_file
from topodiag.evidence.interface import Blob
from topodiag.evidence.kinds import Kind
from topodiag.model.cluster_facts import nested, usable
from topodiag.model.errors import InputError

TEXTS = texts(__file__)
TREE, YAML, LINKINFO = TEXTS["tree"], TEXTS["yaml"], TEXTS["linkinfo"]


@examples("text", "levels", "shown")
def test_a_cluster_is_read_as_its_row_says(
    text: str, levels: list[tuple[str, list[int]]], shown: dict[str, Any] | None
) -> None:
    cluster_facts = facts(with_texts(text, __file__))
    assert levels_of(cluster_facts) == levels
    assert shown is None or parts(cluster_facts, shown) == shown


# --- CSV ------------------------------------------------------------------------------------------------------


def test_a_row_may_name_a_node_set_and_the_gpus_that_are_free() -> None:
    cluster_facts = facts('node,gpus,free\ngpu[01-02],4,"0-1,3"\ngpu03,4,none\ngpu04,4,\n')
    assert usable(cluster_facts, 8).tolist() == [
        [True, True, False, True], [True, True, False, True], [False] * 4, [True] * 4,
    ]  # fmt: skip


def test_a_missing_outer_label_does_not_split_the_group_inside() -> None:
    partitions = nested(("leaf", "spine"), [["a", "a", "b", "c"], [None, None, "s", "s"]])
    assert [partition.group.tolist() for partition in partitions] == [[0, 0, 1, 2], [0, 0, 1, 1]]


@pytest.mark.parametrize("mark", [";", "\t"])
def test_spreadsheets_separate_cells_in_other_ways(mark: str) -> None:
    cluster_facts = facts("node,gpus,free,leaf\nn1,4,0-1,a\nn2,4,,b\n".replace(",", mark))
    assert usable(cluster_facts, 8).sum(axis=1).tolist() == [2, 4]
    assert levels_of(cluster_facts) == [("leaf", [0, 1])]


# --- Slurm ----------------------------------------------------------------------------------------------------


@examples("text", "says")
def test_bad_files_are_one_clear_line(text: str, says: str) -> None:
    line = refused(text)
    assert says in line
    assert "\n" not in line


def test_a_long_chain_of_switches_with_a_cycle_above_it_ends() -> None:
    chain = "".join(f"SwitchName=s{n} Switches=s{n - 1}\n" for n in range(1, 40))
    assert "more than 16 levels" in refused(f"SwitchName=s0 Nodes=n1 Switches=s39\n{chain}")


# --- InfiniBand -----------------------------------------------------------------------------------------------


def discovered(pods: int = 2, leaves: int = 4, nodes: int = 4, spines: int = 2, uplinks: int = 1) -> str:
    """A rail-optimised fabric: node n of a pod has a port on every leaf; the pods' spines meet in one core."""
    text = ["# Topology file: generated on Mon Jan  6 10:00:00 2025", ""]
    for pod in range(pods):
        for leaf in range(leaves):
            text += [
                "vendid=0x2c9",
                "switchguid=0x1",
                f'Switch\t65 "S-1{pod}{leaf}"\t\t# "MF0;leaf{pod}{leaf}:MQM/U1" enhanced',
            ]
            text += [
                f'[{n + 1}]\t"H-{pod}{leaf}{n}"[1]({pod}{leaf}{n}) \t\t# "gpu{pod}-{n} mlx5_{leaf}" lid 7 4xNDR'
                for n in range(nodes)
            ]
            text += [
                f'[{30 + s * 8 + u}]\t"S-2{pod}{s}"[1]\t\t# "MF0;spine{pod}{s}:MQM/U1" lid 9 4xNDR'
                for s in range(spines)
                for u in range(uplinks)
            ]
            text += ['[65]\t"H-9"[1](9) \t\t# "Mellanox Technologies Aggregation Node" lid 193 4xNDR', ""]
        for s in range(spines):
            text += [f'Switch\t65 "S-2{pod}{s}"\t\t# "MF0;spine{pod}{s}:MQM/U1" enhanced port 0']
            text += [f'[{n}]\t"S-1{pod}{n}"[30]\t\t# "MF0;leaf{pod}{n}:MQM/U1" lid 9 4xNDR' for n in range(leaves)]
            text += ['[60]\t"S-300"[1]\t\t# "MF0;core:MQM/U1" lid 9 4xNDR', ""]
    text += ['Switch\t65 "S-300"\t\t# "MF0;core:MQM/U1" enhanced port 0']
    text += ['[64]\t"H-77"[1](77) \t\t# "ufm01 mlx5_0" lid 3 4xHDR', 'Ca\t1 "H-77"\t\t# "ufm01 mlx5_0"']
    return "\n".join(text) + "\n"


def test_nodes_that_share_leaf_switches_are_one_group_and_spines_join_pods() -> None:
    cluster_facts = facts(discovered())
    assert levels_of(cluster_facts) == [("leaf", [0] * 4 + [1] * 4), ("core", [0] * 8)]
    assert cluster_facts.rails == 4


def test_a_host_with_few_ports_is_no_compute_node() -> None:
    cluster_facts = facts(discovered())
    assert "ufm01" not in cluster_facts.nodes
    assert any("ufm01" in note for note in cluster_facts.notes)


def test_oversubscription_is_what_enters_the_leaves_over_what_leaves_the_pod() -> None:
    # 4 leaves x 4 nodes enter a pod; each of its spines has one cable to the core.
    assert facts(discovered()).partitions[0].oversubscription == 8.0
    assert facts(discovered(spines=4)).partitions[0].oversubscription == 4.0


def test_leaves_of_single_port_nodes_are_groups_below_their_spine() -> None:
    cluster_facts = facts(
        discovered(pods=1, leaves=1) + discovered(pods=1, leaves=1).replace("gpu0", "gpu7").replace("S-100", "S-1ff")
    )
    assert [kind for kind, _ in levels_of(cluster_facts)] == ["leaf", "spine"]
    assert cluster_facts.rails == 1, "all that a node has is on one switch"


def test_iblinkinfo_by_line_tells_the_same() -> None:
    lines = []
    name = guid = ""
    for line in LINKINFO.splitlines():
        if line.startswith("Switch"):
            _, guid, rest = line.split(" ", 2)
            name = rest[:-1]
        elif line.startswith("CA"):
            name = ""
        elif name and "LinkUp" in line:
            left, right = line.split("==>")
            lines.append(f'{guid} "{name:>30}" {left.strip()}==>  0x0000000000000aaa {right.strip()}')
    cluster_facts = facts("\n".join(lines))
    assert levels_of(cluster_facts) == levels_of(facts(LINKINFO))


def test_global_links_between_the_spines_of_a_dragonfly_join_its_groups() -> None:
    text = []
    for group in range(3):
        for leaf in range(2):
            text.append(f'Switch\t65 "S-1{group}{leaf}"\t\t# "MF0;leaf{group}{leaf}:M/U1" enhanced port 0')
            text += [f'[{n}]\t"H-{group}{leaf}{n}"[1](1) \t\t# "n{group}{leaf}{n} mlx5_0" lid 7 4xNDR' for n in (1, 2)]
            text.append(f'[30]\t"S-2{group}"[1]\t\t# "MF0;spine{group}:M/U1" lid 9 4xNDR')
        text.append(f'Switch\t65 "S-2{group}"\t\t# "MF0;spine{group}:M/U1" enhanced port 0')
        text += [f'[{n}]\t"S-1{group}{n}"[30]\t\t# "MF0;leaf{group}{n}:M/U1" lid 9 4xNDR' for n in range(2)]
        text += [f'[{5 + other}]\t"S-2{other}"[5]\t\t# "MF0;spine{other}:M/U1" lid 9 4xNDR'
                 for other in range(3) if other != group]  # fmt: skip
    cluster_facts = facts("\n".join(text))
    assert [(part.kind, part.groups, part.oversubscription) for part in cluster_facts.partitions] == [
        ("leaf", 6, 2.0), ("group", 3, 1.0), ("fabric", 1, 0.0),
    ]  # fmt: skip


def test_a_fabric_without_hosts_says_so() -> None:
    assert "shows no host" in refused('Switch\t65 "S-1"\t\t# "MF0;leaf:MQM/U1" enhanced port 0\n')


# --- other files ----------------------------------------------------------------------------------------------


@examples("text", "says")
def test_a_file_of_another_kind_is_told_where_it_belongs(text: str, says: str) -> None:
    line = refused(text)
    assert "no description of a cluster" in line
    assert says in line


# --- any bytes ------------------------------------------------------------------------------------------------

SEEDS = [TREE, YAML, LINKINFO, discovered(), listed(node("n1", {"a": "b"})), "node,gpus,free\nn[1-4],8,0-3\n"]


def one_line(error: InputError) -> bool:
    return "\n" not in str(error)


@given(st.sampled_from(SEEDS), st.data())
def test_a_damaged_file_is_read_or_refused(text: str, data: st.DataObject) -> None:
    raw = bytearray(text.encode())
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(raw) - 1))
        raw[place : place + data.draw(st.integers(0, 20))] = data.draw(st.binary(max_size=6))
        if not raw:
            break
    try:
        cluster_facts = read_cluster(Blob("damaged", bytes(raw)))
    except InputError as error:
        if not one_line(error):
            raise
    else:
        assert all(len(partition.group) == len(cluster_facts.nodes) for partition in cluster_facts.partitions)


def test_a_bomb_of_aliases_in_a_topology_yaml_is_refused() -> None:
    bomb = "".join(f"    - &a{n} [{', '.join([f'*a{n - 1}'] * 10) if n else 'x, x'}]\n" for n in range(30))
    text = f"- topology: t\n  bomb:\n{bomb}  tree:\n    switches:\n      - switch: s\n        nodes: *a29\n"
    assert "repeats itself by aliases" in refused(text)


@pytest.mark.parametrize("line", ["SwitchName=s{0} Nodes=n[1-100]", "BlockName=b{0} Nodes=n[1-100]"])
def test_names_are_counted_over_all_lines_of_a_topology_conf(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slurm, "MAX_LISTED", 500)
    assert "lists more than 500 names" in refused("\n".join(line.format(number) for number in range(6)))
    assert "lists more than" not in refused(line.format(0) + "\nx\n")


@pytest.mark.parametrize("table", TABLES, ids=lambda table: f"{table[0]}-{table[1][0][0].rpartition('/')[2]}")
def test_every_writers_labels_make_levels_innermost_first(table: tuple[str, tuple[tuple[str, str], ...]]) -> None:
    used = table[1][:3]
    rows = [{label: f"g{number >> (place + 1)}" for place, (label, _) in enumerate(used)} for number in range(8)]
    cluster_facts = facts(listed(*(node(f"n{number}", row) for number, row in enumerate(rows))))
    assert [partition.group.tolist() for partition in cluster_facts.partitions] == [
        [number >> (place + 1) for number in range(8)] for place in range(len(used))
    ]
    assert len({partition.kind for partition in cluster_facts.partitions}) == len(used)


@pytest.mark.parametrize("label", DOMAINS)
def test_every_label_of_an_nvlink_domain_is_read(label: str) -> None:
    cluster_facts = facts(listed(*(node(f"n{n}", {label: f"d{n // 2}"}) for n in range(4))))
    assert cluster_facts.domain.group.tolist() == [0, 0, 1, 1]


def test_four_layers_of_aws_have_four_kinds() -> None:
    prefix = "topology.k8s.aws/network-node-layer-"
    rows = [{f"{prefix}{layer}": f"nn-{n >> (4 - layer)}" for layer in range(1, 5)} for n in range(16)]
    cluster_facts = facts(listed(*(node(f"n{n:02d}", row) for n, row in enumerate(rows))))
    assert [(partition.kind, partition.groups) for partition in cluster_facts.partitions] == [
        ("leaf", 16), ("spine", 8), ("core", 4), ("fabric", 2),
    ]  # fmt: skip


def test_nodes_that_cannot_take_pods_offer_no_gpu() -> None:
    down = node("n2", {})
    down["status"]["conditions"][0]["status"] = "Unknown"  # type: ignore[index]
    cluster_facts = facts(listed(node("n1", {}), down, node("n3", {}, unschedulable=True), node("cpu", {}, gpus="0")))
    assert cluster_facts.nodes == ("n1", "n2", "n3")
    assert usable(cluster_facts, 8).sum(axis=1).tolist() == [8, 0, 0]


def test_the_instance_type_names_the_system() -> None:
    labels = {"node.kubernetes.io/instance-type": "p5.48xlarge", "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}
    cluster_facts = facts(listed(node("n1", labels)))
    assert (cluster_facts.system, cluster_facts.gpu) == ("p5.48xlarge", "NVIDIA-H100-80GB-HBM3")


@pytest.mark.parametrize(
    ("broken", "left"),
    [
        ([5, None, "n9", []], ("n1",)),
        ([{"kind": "Pod", "metadata": {"name": "p"}}], ("n1",)),
        ([{"kind": "Node", "metadata": []}, {"metadata": {"name": ["n9"]}}], ("n1",)),
        ([{"metadata": {"name": "n9", "labels": [1]}, "spec": 1, "status": "up"}], ("n1",)),
        ([{"metadata": {"name": "n9"}, "status": {"capacity": {"nvidia.com/gpu": 4}, "conditions": {}}}], ("n9", "n1")),
    ],
)
def test_an_entry_that_is_no_node_with_gpus_costs_itself(broken: list[object], left: tuple[str, ...]) -> None:
    assert facts(json.dumps({"kind": "List", "items": [*broken, node("n1", {})]})).nodes == left


def test_one_node_by_itself_is_a_cluster() -> None:
    assert facts(json.dumps(node("n1", {}))).nodes == ("n1",)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (listed(node("n1", {}))[:-4], "is no JSON: "),
        ('{"kind": "NodeList", "items": 5}', "has no list of nodes"),
        ('{"kind": "List", "items": []}', "names no nodes"),
        ('{"kind": "List", "items": ' + "[" * 200_000, "is no JSON: "),
        ('{"kind": "List", "items": [{"spec": ' + '{"a":' * 200_000, "is no JSON: "),
    ],
    ids=["cut short", "no list", "none", "deep list", "deep node"],
)
def test_bad_kubernetes_json_is_one_clear_line(text: str, says: str) -> None:
    assert says in refused(text)
    assert "\n" not in refused(text)


# --- lists of pods in every form in which kubectl prints them: which pod is on which node ---------------------

WIDE = """\
NAMESPACE   NAME       READY   STATUS    RESTARTS      AGE   IP           NODE      NOMINATED NODE   READINESS GATES
ml          worker-0   1/1     Running   2 (5m ago)    12m   10.4.1.9     gke-77    <none>           <none>
ml          worker-1   0/1     Pending   0             12m   <none>       <none>    <none>           <none>
"""
DESCRIBED = """\
Name:             worker-0
Namespace:        ml
Node:             gke-77/10.0.0.77
Status:           Running
IP:               10.4.1.9
IPs:
  IP:           10.4.1.9
"""
EVENTS = """\
LAST SEEN   TYPE     REASON      OBJECT         MESSAGE
12m         Normal   Scheduled   pod/worker-0   Successfully assigned ml/worker-0 to gke-77
"""
POD = {
    "kind": "Pod",
    "metadata": {"name": "worker-0"},
    "spec": {"nodeName": "gke-77"},
    "status": {"podIP": "10.4.1.9", "hostIP": "10.0.0.77"},
}
MANIFEST = """\
apiVersion: v1
kind: Pod
metadata:
  name: worker-0
spec:
  nodeName: gke-77
"""
PRINTED = {"wide": WIDE, "described": DESCRIBED, "events": EVENTS, "json": json.dumps(POD, indent=2), "yaml": MANIFEST,
         "list": json.dumps({"apiVersion": "v1", "kind": "PodList", "items": [POD]})}  # fmt: skip


@pytest.mark.parametrize("form", PRINTED)
def test_every_form_ties_the_pod_to_its_node(form: str) -> None:
    [tie] = read_pods(Blob("pods", PRINTED[form].encode()))
    assert tie.names[:2] == ("gke-77", "worker-0")


@pytest.mark.parametrize("form", PRINTED)
def test_every_form_is_recognised(form: str) -> None:
    assert Kind.PODS in kind_of_file(PRINTED[form].encode()).kinds


def test_addresses_are_names_of_the_machine_too() -> None:
    [tie] = read_pods(Blob("pods", PRINTED["json"].encode()))
    assert tie.names[2:] == ("10.4.1.9", "10.0.0.77")


def test_a_pod_that_waits_for_a_node_ties_nothing() -> None:
    assert "worker-1" not in str(read_pods(Blob("pods", WIDE.encode())))


@pytest.mark.parametrize("text", ["", "Name: x\n", "kind: Pod\nspec: 3\nnodeName: 5\n", WIDE[:180], "\0" * 50])
def test_a_text_that_says_less_ties_nothing(text: str) -> None:
    assert read_pods(Blob("pods", text.encode())) == ()
