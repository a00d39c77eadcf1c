"""Settings from the environment and from nccl.conf."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.evidence.filled import read, recognises, value
from tests.tables import examples, texts
from topodiag.evidence.host.settings import as_nccl_reads
from topodiag.words.unfilled import is_unfilled

CORPUS = Path(__file__).parents[4] / "shared" / "corpus"
TEXTS = texts(__file__)
TREE = TEXTS["tree"]


def taken(text: str, name: str = "-") -> list[tuple[str, str, str]]:
    draft, _ = read("settings", text, name)
    return [(setting.name, setting.value, setting.scope) for setting in draft.settings]


def test_the_environment_and_every_conf_file_give_settings_with_their_scope() -> None:
    assert taken(TREE) == [
        ("NCCL_DEBUG", "INFO", "environment"),
        ("NCCL_CONF_FILE", "/opt/site/fast.cfg", "environment"),
        ("NCCL_IB_PKEY", "0x8001", "environment"),
        ("NCCL_NET_GDR_LEVEL", '"SYS" # far', "/etc/nccl.conf"),
        ("NCCL_MIN_NCHANNELS", "8", "/opt/site/fast.cfg"),
    ]


def test_every_line_of_a_conf_file_is_kept_as_it_stands_with_its_number() -> None:
    draft, _ = read("settings", TREE)
    assert [(line.path, line.number, line.text) for line in draft.conf_lines] == [
        ("/etc/nccl.conf", 1, "# comment"),
        ("/etc/nccl.conf", 2, "NCCL_IB_HCA = mlx5"),
        ("/etc/nccl.conf", 3, 'NCCL_NET_GDR_LEVEL="SYS" # far'),
        ("~/.nccl.conf", 1, "export NCCL_ALGO=Ring"),
        ("/opt/site/fast.cfg", 1, "NCCL_MIN_NCHANNELS=8"),
    ]
    assert draft.conf_lines[1].origin.line == 8


def test_the_job_is_identified_by_its_scheduler() -> None:
    pod = "= var/run/secrets/kubernetes.io/serviceaccount/namespace\tteam-a\n"
    draft, _ = read("settings", TREE + pod)
    scheduler = draft.single("scheduler")
    assert value(scheduler, "SLURM_JOB_ID") == "7"
    assert value(scheduler, "POD_NAMESPACE") == "team-a"


def test_an_empty_environment_was_looked_at() -> None:
    draft, parsed = read("settings", "d environ\t\n")
    assert len(parsed.records) == 1
    assert draft.settings == []


@pytest.mark.parametrize(
    ("line", "read_as"),
    [
        ("NCCL_DEBUG=INFO", ("NCCL_DEBUG", "INFO")),
        ("NCCL_DEBUG=INFO ", ("NCCL_DEBUG", "INFO ")),
        ("NCCL_IB_HCA = mlx5", ("NCCL_IB_HCA ", " mlx5")),
        ("NCCL_IB_HCA==mlx5_0:1", ("NCCL_IB_HCA", "=mlx5_0:1")),
        ('NCCL_ALGO="Ring"', ("NCCL_ALGO", '"Ring"')),
        ("export NCCL_ALGO=Ring", ("export NCCL_ALGO", "Ring")),
        ("NCCL_ALGO=Ring # fast", ("NCCL_ALGO", "Ring # fast")),
        (" # NCCL_ALGO=Ring", (" # NCCL_ALGO", "Ring")),
        ("#NCCL_ALGO=Ring", None),
        ("NCCL_ALGO Ring", None),
        ("", None),
        ("NCCL_A=" + "x" * 2000, ("NCCL_A", "x" * 1023)),
    ],
)
def test_a_conf_line_is_read_to_the_letter_as_nccl_reads_it(line: str, read_as: tuple[str, str] | None) -> None:
    assert as_nccl_reads(line) == read_as


def test_of_two_lines_for_one_variable_the_first_counts() -> None:
    assert taken("NCCL_ALGO=Ring\nNCCL_ALGO=Tree\n", "nccl.conf") == [("NCCL_ALGO", "Ring", "nccl.conf")]


def test_bare_text_named_conf_is_a_conf_file_and_its_lines_are_kept() -> None:
    draft, _ = read("settings", "# site\nNCCL_DEBUG=WARN\nexport NCCL_ALGO=Ring\n", "site/nccl.conf")
    assert [line.number for line in draft.conf_lines] == [1, 2, 3]
    assert [setting.name for setting in draft.settings] == ["NCCL_DEBUG"]


def test_blanks_round_the_equals_sign_betray_a_conf_file_under_any_name() -> None:
    draft, _ = read("settings", "NCCL_IB_HCA = mlx5\nNCCL_DEBUG=INFO\n", "-")
    assert len(draft.conf_lines) == 2


def test_bare_exports_are_an_environment_and_no_faulty_conf_file() -> None:
    draft, _ = read("settings", 'export NCCL_IB_HCA="mlx5"\nNCCL_DEBUG=INFO\n', "-")
    assert draft.conf_lines == []
    assert [(setting.name, setting.value) for setting in draft.settings] == [
        ("NCCL_IB_HCA", "mlx5"),
        ("NCCL_DEBUG", "INFO"),
    ]


def test_bare_env_output_gives_what_bears_on_communication_and_no_secret() -> None:
    text = "PATH=/bin\nHOME=/root\nNCCL_DEBUG=INFO\nUCX_TLS=rc\nSLURM_NODEID=3\nWANDB_API_KEY=1\nFI_AUTH_KEY=2\n"
    draft, _ = read("settings", text)
    assert [setting.name for setting in draft.settings] == ["NCCL_DEBUG", "UCX_TLS"]
    assert set(draft.single("scheduler").offers) == {"SLURM_NODEID"}
    assert recognises("settings", text)


@examples("text", "known")
def test_it_recognises_settings_and_nothing_else(text: str, known: bool) -> None:
    assert recognises("settings", text) is known


def test_no_other_kind_of_text_in_the_wild_is_taken_for_a_host_format() -> None:
    if not CORPUS.is_dir():
        pytest.skip("the corpus is not here")
    kinds = ("sys-pci", "sys-cpu", "os-state", "settings", "lspci", "systemctl", "kernel-log")
    wrong = []
    for folder in ("topo_m", "logs", "nccl_tests", "pairwise", "topo"):
        for path in sorted((CORPUS / folder).iterdir()):
            if path.suffix in (".txt", ".xml", ".csv"):
                text = path.read_text(errors="replace")[:65536]
                wrong += [(path.name, kind) for kind in kinds if recognises(kind, text)]
    assert wrong == []


@given(st.binary(max_size=300), st.integers(0, len(TREE)))
def test_any_bytes_in_the_middle_are_survived(noise: bytes, at: int) -> None:
    raw = TREE.encode()
    read("settings", raw[:at] + noise + raw[at:])


@given(st.lists(st.text(max_size=40), max_size=12))
def test_every_line_of_any_conf_file_is_kept(lines: list[str]) -> None:
    clean = ["".join(char for char in line if char.isprintable()) for line in lines]
    clean = [line for line in clean if not is_unfilled(line) or " " not in line]  # messages of a program
    draft, _ = read("settings", "".join(f"{line}\n" for line in clean), "nccl.conf")
    assert [line.text for line in draft.conf_lines] == clean
