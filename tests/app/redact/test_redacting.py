"""`--redact` on a report: the collector's tokens for names, addresses and serials, and our own words as they are."""

import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from tests.tables import examples, within
from topodiag.app.logs import logs
from topodiag.app.redact.redacting import hidden, redacted
from topodiag.app.scan import scan
from topodiag.model.cluster import Cluster, Level
from topodiag.model.devices import Nic
from topodiag.model.finding import Finding, Input, Severity, Where
from topodiag.model.node import Node
from topodiag.model.provenance import Fact, Origin
from topodiag.model.result import Result, Trouble
from topodiag.report.html.page import html_of, result_sheet
from topodiag.report.job.table import draw_logs
from topodiag.report.table import draw_result
from topodiag.sweep.values import SweepRun
from topodiag_probes.redact import Redactor
from topodiag_probes.tokens import Tokens

KEY = b"a site's key"
NODE = "fixture:dgx-h100-gpu3-12of18-nvlink"


@pytest.fixture(scope="module")
def node() -> Result:
    return scan([NODE])


@pytest.fixture(scope="module")
def answer(node: Result) -> Result:
    return redacted(node, KEY)


def found(message: str, hosts: Sequence[str] = (), evidence: str = "", source: str = "log") -> Result:
    finding = Finding(
        "NVL001",
        Severity.ERROR,
        message,
        "",
        "",
        (),
        where=Where(nodes=tuple(hosts)),
        evidence=(Origin(source, 1, evidence),),
    )
    return Result(findings=(finding,))


def test_no_name_address_or_serial_of_a_node_is_left_in_its_page(node: Result, answer: Result) -> None:
    page = html_of(result_sheet("scan", answer, draw_result))
    (machine,) = node.nodes
    secrets = {machine.host, *(gpu.uuid.value for gpu in machine.gpus)} - {None, ""}
    assert len(secrets) > 4
    assert [secret for secret in secrets if str(secret) in page] == []


def test_a_host_has_the_token_that_the_collector_gives_it(node: Result, answer: Result) -> None:
    assert answer.nodes[0].host == Tokens(KEY).host(node.nodes[0].host)


def test_the_same_thing_has_the_same_token_everywhere_and_another_key_gives_another(
    node: Result, answer: Result
) -> None:
    assert redacted(node, KEY) == answer
    assert redacted(replace(node, outcomes=()), b"other").nodes[0].host != answer.nodes[0].host


def test_the_findings_stay_what_they_are(node: Result, answer: Result) -> None:
    (before,), (after,) = node.findings, answer.findings
    assert (after.id, after.message, after.fix, after.cost) == (before.id, before.message, before.fix, before.cost)
    assert after.where.gpus == before.where.gpus
    assert after.evidence[0].source == "json/nvml.json"


@examples("hosts", "given", "shown")
def test_a_finding_redacted(hosts: list[str] | None, given: dict[str, str], shown: dict[str, str]) -> None:
    """The patterns of its message, its evidence and the source, in which `{HOST}` is the token of the first host and
    the next ones have numbers; the tokens stand where the finding is, too."""
    tokens = [Tokens(KEY).host(host) for host in hosts or ()]
    names = {f"HOST{at or ''}": re.escape(token) for at, token in enumerate(tokens)}
    finding = redacted(found(**{"message": "x", **given}, hosts=hosts or ()), KEY).findings[0]
    assert finding.where.nodes == tuple(tokens)
    [origin] = finding.evidence
    texts = {"message": finding.message, "evidence": origin.text, "source": origin.source}
    assert {name: own for name, own in shown.items() if not re.fullmatch(within(own, names), texts[name])} == {}, texts


def test_what_is_read_of_a_report_is_what_the_collector_would_have_written() -> None:
    text = "eth0 10.11.12.13 0c:42:a1:00:00:01"
    assert redacted(found("x", evidence=text), KEY).findings[0].evidence[0].text == Redactor(KEY).text(text)


def test_checksums_and_ids_stay(node: Result) -> None:
    answer = redacted(replace(node, inputs=(Input("a.log", "nccl-log", "0123456789abcdef" * 4),)), KEY)
    assert answer.inputs[0].sha256 == "0123456789abcdef" * 4
    assert [outcome.check for outcome in answer.outcomes] == [outcome.check for outcome in node.outcomes]


def test_hosts_of_a_job_are_replaced_in_its_tables_and_drawings() -> None:
    job = logs(["fixture:socket-fallback"])
    page = html_of(result_sheet("logs", redacted(job, KEY), draw_logs))
    assert [host for host in job.jobs[0].hosts if host in page] == []
    assert Tokens(KEY).host(job.jobs[0].hosts[0]) in page


def test_lines_that_nothing_explains_are_quotes() -> None:
    result = redacted(Result(unexplained=(Trouble("NCCL WARN", "call to host acme-7 failed", "acme-7"),)), KEY)
    assert "acme" not in result.unexplained[0].text


def test_a_path_in_a_sentence_has_the_token_that_it_has_alone() -> None:
    path = "/data/acmecorp/run-7.log"
    result = replace(found(f"{path}:3: odd, see run-7.log"), inputs=(Input(path, "nccl-log", "0" * 64),))
    answer = redacted(result, KEY)
    text = answer.inputs[0].path
    assert "acmecorp" not in text
    assert answer.findings[0].message.startswith(f"{text}:3: odd, see ")
    assert answer.findings[0].message.endswith(text.rpartition("/")[2])


def test_a_guid_that_stands_bare_in_its_field_is_replaced_everywhere() -> None:
    node = Node("zebra-17", nics=(Nic("mlx5_0", node_guid=Fact("5c25730300ab1234")),))
    result = redacted(replace(found("port of 5c25730300ab1234 is down"), nodes=(node,)), KEY)
    fresh = result.nodes[0].nics[0].node_guid.value
    assert fresh != "5c25730300ab1234"
    assert result.findings[0].message == f"port of {fresh} is down"


def test_the_id_of_a_sweeps_run_loses_the_names_in_it() -> None:
    host = Tokens(KEY).host
    runs = tuple(SweepRun(name, "pairs", 1, ("zebra-17", "zebra-18"), (0,), "alltoall", "alltoall_perf") for name in (
        "1-pairs-zebra-17+zebra-18", "2-rails-zebra-17+zebra-18-rail3"))  # fmt: skip
    assert [sweep_run.id for sweep_run in redacted(runs, KEY)] == [
        f"1-pairs-{host('zebra-17')}+{host('zebra-18')}", f"2-rails-{host('zebra-17')}+{host('zebra-18')}-rail3"
    ]  # fmt: skip


def test_switches_and_nodes_of_a_cluster_keep_what_belongs_together() -> None:
    level = Level("leaf", np.array([0, 0]), 1.0, 50.0, ("leaf-mars",), source="datasheet of zebra-17")
    cluster = Cluster(("zebra-17", "zebra-18"), np.ones((2, 8), bool), np.array([0, 1]), (level,), 1.0, 400.0)
    pair = redacted((cluster, "zebra-17 is below leaf-mars"), KEY)
    assert pair[0].names == tuple(Tokens(KEY).host(name) for name in cluster.names)
    assert pair[1] == f"{pair[0].names[0]} is below {pair[0].levels[0].names[0]}"
    assert pair[0].levels[0].source == f"datasheet of {pair[0].names[0]}"
    assert pair[0].usable is cluster.usable


def test_a_file_in_the_bundle_of_a_node_keeps_its_name_and_loses_the_node() -> None:
    inputs = (Input("zebra-17/json/nvml.json", "nvml", "0" * 64), Input("acmecorp/json/nvml.json", "nvml", "0" * 64))
    result = redacted(Result(inputs=inputs, nodes=(Node("zebra-17"),)), KEY)
    assert result.inputs[0].path == f"{Tokens(KEY).host('zebra-17')}/json/nvml.json"
    assert "acmecorp" not in result.inputs[1].path


def test_secrets_are_hidden_without_redaction_and_all_else_stays() -> None:
    text = "fetch https://svc:Kestrel77x@git.example.net/x token=glpat-7hUq2Lx9VbN4mT1cRz8K on gpu-07"
    finding = hidden(found(text, ["gpu-07"], evidence=text)).findings[0]
    assert finding.message == finding.evidence[0].text == "fetch https://git.example.net/x token=<hidden> on gpu-07"
    assert finding.where.nodes == ("gpu-07",)


def test_a_result_without_secrets_stays_the_very_object(node: Result) -> None:
    assert hidden(node) is node


def test_what_a_cut_leaves_of_a_login_or_a_token_is_hidden() -> None:
    line = "gpu-07: fetch of https://svc:Kestrel77x@git.example.net/x with glpat-7hUq2Lx9VbN4mT1cRz8K failed"
    for length in range(len(line)):
        message = hidden(found(line[:length])).findings[0].message
        assert "Kestrel" not in message
        assert "7hUq2Lx9" not in message
        assert message.startswith(line[: min(length, 17)])
