"""Metrics of NCCL's Inspector: text of the node exporter, dumps over time, results of Prometheus' queries."""

import gzip
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.checks.wanted import expect
from tests.files import laid
from tests.tables import examples
from topodiag.app.logs import logs
from topodiag.evidence.intake.kind_of_file import kind_of_file
from topodiag.evidence.kinds import Kind
from topodiag.evidence.live.inspector import InspectorReader
from topodiag.model.finding import Finding
from topodiag.model.inspector import Inspection, MadeOf
from topodiag.model.result import Result

START = 1_746_000_000
LATE_US = 300.0
TIME = ("nccl_collective_exec_time_microseconds",)
RATE = ("nccl_bus_bandwidth_gbs",)
Took = Callable[[int, int], float]
"""Microseconds of a call by the number of its GPU and that of the dump."""


def punctual(gpu: int, dump: int) -> float:
    """Who comes last changes from dump to dump."""
    return 1000.0 + (gpu * 7 + dump * 3) % 11


def late(gpu: int, dump: int) -> float:
    """GPU 5 comes 300 us after the others, which wait."""
    return punctual(gpu, dump) - LATE_US * (gpu == 5)


def labels(gpu: int, name: str = "dp", nranks: int = 16, nodes: int = 2, **other: str) -> dict[str, str]:
    """Those of NCCL 2.30 and later."""
    return {
        "version": "v5.1", "slurm_job_id": "4711", "node": f"n{gpu // 8}", "gpu": f"GPU{gpu % 8}", "comm_name": name,
        "n_nodes": str(nodes), "nranks": str(nranks), "collective": "AllReduce", "message_size": "64-65MB",
        "algo_proto": "RING_SIMPLE", **other,
    }  # fmt: skip


def lines(own: dict[str, str], us: float, at: str = "") -> Iterator[str]:
    text = ",".join(f'{name}="{value}"' for name, value in own.items())
    nranks = int(own["nranks"])
    gbs = (64 << 20) / us / 1e3 * 2 * (nranks - 1) / nranks
    yield f"nccl_bus_bandwidth_gbs{{{text}}} {gbs:.6g}{at}"
    yield f"nccl_collective_exec_time_microseconds{{{text}}} {us:.6g}{at}"


def dump(took: Took, number: int, gpus: int = 16, at: str = "") -> str:
    """What the exporters of all GPUs tell at one time."""
    return "".join(f"{line}\n" for gpu in range(gpus) for line in lines(labels(gpu), took(gpu, number), at))


def query(took: Took, dumps: int, step: int = 60, gpus: int = 16) -> bytes:
    """What /api/v1/query_range answers for both names."""
    result: list[dict[str, object]] = []
    for gpu in range(gpus):
        for name, times in (("nccl_bus_bandwidth_gbs", 125_829.12), ("nccl_collective_exec_time_microseconds", 0)):
            values = [
                [START + step * n, f"{times / took(gpu, n) if times else took(gpu, n):.6g}"] for n in range(dumps)
            ]
            own = {"__name__": name, "instance": f"n{gpu // 8}:9100", "job": "node", **labels(gpu)}
            result.append({"metric": own, "values": values})
    return json.dumps({"status": "success", "data": {"resultType": "matrix", "result": result}}).encode()


def vector(took: Took, number: int, names: tuple[str, ...] = ("nccl_bus_bandwidth_gbs",), gpus: int = 16) -> bytes:
    """What /api/v1/query answers at one time."""
    result = [
        {"metric": {"__name__": name, **labels(gpu)}, "value": [START + 60 * number, str(value)]}
        for name in names
        for gpu in range(gpus)
        for value in [125_829.12 / took(gpu, number) if name.endswith("gbs") else took(gpu, number)]
    ]
    return json.dumps({"status": "success", "data": {"resultType": "vector", "result": result}}).encode()


def of_rates(text: bytes) -> bytes:
    """Of an answer of query_range the series of the bandwidth."""
    document = json.loads(text)
    series = document["data"]["result"]
    document["data"]["result"] = [
        series for series in series if series["metric"]["__name__"] == "nccl_bus_bandwidth_gbs"
    ]
    return json.dumps(document).encode()


def inspection(*files: bytes | str, names: tuple[str, ...] = ()) -> Inspection:
    reader = InspectorReader()
    for number, each in enumerate(files):
        data = each.encode() if isinstance(each, str) else each
        reader.read([data], names[number] if names else f"{number}.prom")
    return reader.found()


def result_of(folder: Path, *texts: str) -> Result:
    """Of dumps one after the other in one file."""
    (folder / "metrics.txt").write_text("".join(texts))
    return logs([str(folder)])


def found(result: Result, check: str) -> list[Finding]:
    return [finding for finding in result.findings if finding.id == check]


def gaps(result: Result) -> str:
    return " ".join(f"{gap.what}: {gap.why}" for gap in result.not_observed)


def test_each_sample_is_one_call_of_its_communicator_set_beside_the_others_of_its_minute() -> None:
    told = inspection(*(dump(late, number) for number in range(30)))
    (comm,) = told.communicators
    assert (comm.name, comm.nranks, comm.nnodes, comm.made_of) == ("dp", 16, 2, MadeOf.MEANS)
    assert (told.samples, told.unread, told.others, comm.calls) == (480, 0, 0, 30)
    assert comm.last.keys() == {5}
    (size,) = comm.sizes
    assert (size.collective, size.bytes) == ("AllReduce", 64 << 20)
    assert size.busbw_gbs == pytest.approx(125_829.12 / size.clean_us, rel=0.01)


@pytest.mark.parametrize("form", ["files", "cat", "scrapes", "query", "gzip"])
def test_the_gpu_that_comes_last_is_named_whatever_form_the_metrics_have(tmp_path: Path, form: str) -> None:
    dumps = [dump(late, number) for number in range(25)]
    files = ["".join(dumps).encode()]
    if form == "files":
        files = [text.encode() for text in dumps]
    elif form == "scrapes":
        head = "# HELP nccl_bus_bandwidth_gbs of a textfile\n# TYPE nccl_bus_bandwidth_gbs untyped\n"
        files = ["".join(head + dump(late, n, at=f" {(START + 60 * n) * 1000}") for n in range(25)).encode()]
    elif form == "query":
        files = [query(late, 25)]
    elif form == "gzip":
        files = [gzip.compress(files[0])]
    result = logs([str(laid(tmp_path, {f"{at:02d}.txt": data for at, data in enumerate(files)}))])
    (finding,) = found(result, "JOB008")
    assert finding.message.startswith("GPU 5 of n0 comes last to the collectives of dp")
    assert "25 means over a dump" in finding.observed
    assert finding.where.nodes == ("n0",)
    assert {file.kind for file in result.inputs} == {"nccl-inspector"}


@pytest.mark.parametrize("form", ["vectors", "matrix", "pretty", "sorted", "text"])
def test_an_answer_of_the_bandwidth_alone_names_the_gpu_that_comes_last(tmp_path: Path, form: str) -> None:
    """Most dashboards ask for no time."""
    matrix = of_rates(query(late, 25))
    files = [matrix]
    if form == "vectors":
        files = [vector(late, number) for number in range(25)]
    elif form == "pretty":
        files = [json.dumps(json.loads(matrix), indent=2).encode()]
    elif form == "sorted":
        files = [json.dumps(json.loads(matrix), sort_keys=True).encode()]
    elif form == "text":
        bandwidths = [line for n in range(25) for line in dump(late, n).splitlines() if line.startswith("nccl_bus_")]
        files = ["\n".join(("# TYPE nccl_bus_bandwidth_gbs gauge", *bandwidths, "")).encode()]
    result = logs([str(laid(tmp_path, {f"{at:02d}.json": data for at, data in enumerate(files)}))])
    expect(found(result, "JOB008"), message="GPU 5 of n0 comes last to the collectives of dp*")
    assert "400 samples of bandwidth without a time" in gaps(result)
    assert "the true ones are as long or longer" in gaps(result)
    assert sum(file.records for file in result.inputs) == 400


def congested(gpu: int, dump: int) -> float:
    """One hour of a day, of twelve dumps each, is slower than the others."""
    return punctual(gpu, dump) * (1.8 if dump // 12 == 7 else 1)


def in_a_node(gpu: int, number: int) -> str:
    """A call of the one communicator of a node; that of n3 takes twice as long as those of the others."""
    us = punctual(gpu, number) * (2 if gpu // 8 == 3 else 1)
    return "".join(f"{line}\n" for line in lines(labels(gpu, name="tp", nranks=8, nodes=1), us))


DAY = query(congested, 12 * 24, step=300, gpus=4).decode()
OF_2_29 = (
    'comm_id="0x7f8c496ae9f661",hostname="n0",rank="3",slurm_job="train",slurm_job_id="4711",nranks="16",n_nodes="2"'
    ',gpu_device_id="GPU3",collective="AllReduce",coll_sn="1407",timestamp="2025-04-30T08:00:00Z"'
    ',message_size="64.00MB"'
)
NAMES_OF_2_29 = ("algorithm_bandwidth_gbs", "bus_bandwidth_gbs", "collective_exec_time_microseconds")
LATE = [dump(late, number) for number in range(25)]
METRICS: dict[str, list[str]] = {
    "bandwidths of punctual GPUs": [of_rates(query(punctual, 60)).decode()],
    "punctual GPUs": [query(punctual, 60).decode()],
    "one answer of the bandwidth": [vector(late, 0).decode()],
    "one dump": LATE[:1],
    "communicators of one node each": [in_a_node(gpu, number) for number in range(22) for gpu in range(48)],
    "a day with an hour of congestion": [DAY.replace('"16"', '"4"').replace('"n_nodes": "2"', '"n_nodes": "1"')],
    "several communicators of one name": [text.replace('nranks="16"', 'nranks="2"') for text in LATE],
    "GPUs that are missing": [dump(late, number, gpus=12) for number in range(25)],
    "all figures of 2.29": [f"nccl_{name}{{{OF_2_29}}} 181.5\n" for name in NAMES_OF_2_29],
    "a bandwidth of 2.29": [
        'nccl_bus_bandwidth_gbs{comm_id="0x7f",rank="3",collective="AllReduce",message_size="64.00MB"} 181.5\n'
    ],
    "two jobs": [*LATE, dump(late, 0).replace("4711", "4712")],
    "other exporters": ['DCGM_FI_DEV_SM_CLOCK{gpu="0"} 1980\nnode_load1 3.5\n', dump(punctual, 0)],
}


@examples("metrics", "finding", "message", "gap")
def test_what_metrics_say(
    tmp_path: Path, metrics: str, finding: str | None, message: str | None, gap: str | None
) -> None:
    """The one finding, if there is one, with words of its message, and what is said to be missing."""
    result = result_of(tmp_path, *METRICS[metrics])
    assert [each.id for each in result.findings] == ([finding] if finding else [])
    assert not message or message in result.findings[0].message
    assert not gap or gap in gaps(result)
    assert {file.kind for file in result.inputs} == {"nccl-inspector"}


@pytest.mark.parametrize("times", [True, False], ids=["with their times", "the bandwidth alone"])
def test_sends_and_receives_are_counted_and_not_judged(times: bool) -> None:
    text = dump(punctual, 0).replace("nccl_collective_exec", "nccl_p2p_exec").replace("nccl_bus", "nccl_p2p_bus")
    told = inspection("".join(f"{line}\n" for line in text.splitlines() if times or "p2p_bus" in line))
    assert (told.transfers, told.samples) == (16, 0)


def test_times_made_of_bandwidths_are_those_of_the_smallest_message_of_the_label() -> None:
    (communicator,) = inspection(of_rates(query(late, 25))).communicators
    (both,) = inspection(query(late, 25)).communicators
    assert 64 / 65 * both.time_us - 1 <= communicator.time_us <= both.time_us + 1
    assert communicator.sizes[0].busbw_gbs == pytest.approx(both.sizes[0].busbw_gbs, rel=1e-3)


def test_where_times_are_beside_the_bandwidths_they_alone_are_judged() -> None:
    told = inspection(*(vector(late, n) for n in range(25)), *(vector(late, n, TIME) for n in range(25)))
    assert (told.samples, told.rates) == (400, 0)
    (beside,) = inspection(*(vector(late, n, TIME + RATE) for n in range(25))).communicators
    (communicator,) = told.communicators
    assert (communicator.sizes, communicator.last) == (beside.sizes, beside.last)


def test_a_file_that_the_node_exporter_tells_again_and_again_is_one_sample() -> None:
    told = inspection(*[dump(late, 0)] * 50)
    assert told.communicators[0].calls == 1


def test_processes_that_see_one_gpu_each_are_told_apart_by_the_names_of_the_files() -> None:
    """With CUDA_VISIBLE_DEVICES each is GPU0: two communicators of a GPU a node look like one."""
    text = dump(late, 0, gpus=16).replace('nranks="16"', 'nranks="2"')
    own = "\n".join(line for line in text.splitlines() if 'gpu="GPU0"' in line)
    one = inspection(own)
    assert one.communicators[0].made_of is MadeOf.MEANS
    files = tuple(f"out/nccl_inspector_metrics_{number:032x}.prom" for number in range(2))
    several = inspection(own, own, names=files)
    assert several.communicators[0].made_of is MadeOf.MEANS_OF_SEVERAL


def test_a_label_that_the_server_renamed_is_that_of_nccl() -> None:
    renamed = [dump(late, number).replace('node="', 'node="scrape",exported_node="') for number in range(30)]
    assert {member.host for member in inspection(*renamed).communicators[0].members.values()} == {"n0", "n1"}


@pytest.mark.parametrize(
    "bad",
    [
        "nccl_bus_bandwidth_gbs{",
        'nccl_bus_bandwidth_gbs{node="n0} x',
        "nccl_collective_exec_time_microseconds{} nan?",
        "nccl_collective_exec_time_microseconds{" + 'a="' * 9000,
    ],
)
def test_one_bad_line_costs_itself(bad: str) -> None:
    told = inspection(f"{dump(punctual, 0)}{bad}\n{dump(punctual, 1)}")
    assert (told.samples, told.unread) == (32, 1)


def test_values_that_are_no_time_are_no_sample() -> None:
    text = dump(punctual, 0)
    for value in ("NaN", "+Inf", "-5", "0"):
        broken = "\n".join(line.rsplit(" ", 1)[0] + " " + value for line in text.splitlines())
        assert inspection(broken).samples == 0


def test_a_cut_answer_of_a_query_is_unread() -> None:
    told = inspection(query(late, 3)[:-40])
    assert (told.unread, told.communicators) == (1, ())


def test_they_are_known_by_their_names_and_not_by_mention() -> None:
    assert Kind.INSPECTOR in kind_of_file(dump(punctual, 0).encode()).kinds
    assert Kind.INSPECTOR in kind_of_file(query(punctual, 2)).kinds
    assert Kind.INSPECTOR not in kind_of_file(b"alert on nccl_bus_bandwidth_gbs{} < 3\n").kinds
    assert (
        Kind.INSPECTOR
        not in kind_of_file(b'{"status":"success","data":{"result":[{"metric":{"__name__":"up"}}]}}').kinds
    )
