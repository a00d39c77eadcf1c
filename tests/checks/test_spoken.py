from tests.checks.wanted import expect
from topodiag.checks.spoken import spoken
from topodiag.model.finding import Finding, Outcome, Severity, Status
from topodiag.model.provenance import Origin
from topodiag.words.dialect import AMD, NVIDIA


def outcome(check: str, observed: str, *quotes: str) -> Outcome:
    finding = Finding(
        check,
        Severity.WARNING,
        "GPU3 has 17 of 18 NVLinks",
        observed,
        "18 NVLinks",
        ("`nvidia-smi nvlink -s`", "systemctl status nvidia-fabricmanager"),
        evidence=tuple(Origin("log", 1, text) for text in quotes),
    )
    return Outcome(check, Status.FINDING, "n", (finding,))


def test_a_finding_on_amd_names_links_and_commands_of_amd() -> None:
    (finding,) = spoken(outcome("NVL001", "17 NVLinks"), AMD).findings
    assert finding.message == "GPU3 has 17 of 18 xGMI links"
    assert finding.observed == "17 xGMI links"
    assert finding.fix == ("`amd-smi xgmi`",)


def test_what_a_finding_quotes_stays_as_it_stands() -> None:
    quote = "NCCL WARN NVLink down"
    finding = expect(spoken(outcome("NVL001", "NVLink down", quote), AMD), observed="NVLink down")
    assert finding.evidence[0].text == quote


def test_a_check_of_what_amd_does_not_build_does_not_apply() -> None:
    answer = spoken(outcome("NVL005", "x"), AMD)
    assert answer.status is Status.NOT_APPLICABLE
    assert answer.findings == ()
    assert spoken(outcome("NVL005", "x"), NVIDIA).status is Status.FINDING
