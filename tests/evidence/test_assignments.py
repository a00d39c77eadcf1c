"""What commands, traces and descriptions of jobs set, in each of the forms that people write."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topodiag.evidence.assignments import Scope, assigned, commanded_in, stated_in


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("mpirun -np 8 -x PATH -x NCCL_PROTO=LL ./all_reduce_perf", [("NCCL_PROTO", "LL")]),
        ("mpiexec -genv NCCL_IB_DISABLE 1 -n 4 ./a", [("NCCL_IB_DISABLE", "1")]),
        ("+ export NCCL_P2P_DISABLE=1", [("NCCL_P2P_DISABLE", "1")]),
        ('export NCCL_IB_HCA="mlx5_0,mlx5_1"', [("NCCL_IB_HCA", "mlx5_0,mlx5_1")]),
        ("srun --export=ALL,NCCL_NET=Socket,NCCL_DEBUG=INFO ./a", [("NCCL_NET", "Socket"), ("NCCL_DEBUG", "INFO")]),
        ("docker run -e NCCL_IB_HCA=mlx5_0,mlx5_1 image", [("NCCL_IB_HCA", "mlx5_0,mlx5_1")]),
        ("setenv NCCL_ALGO Ring", [("NCCL_ALGO", "Ring")]),
        ('os.environ["NCCL_SHM_DISABLE"] = "1"', [("NCCL_SHM_DISABLE", "1")]),
        ("    NCCL_SOCKET_IFNAME: eth0", [("NCCL_SOCKET_IFNAME", "eth0")]),
        ('  "NCCL_NET": "Socket",', [("NCCL_NET", "Socket")]),
        ("unset NCCL_PROTO NCCL_ALGO", [("NCCL_PROTO", ""), ("NCCL_ALGO", "")]),
        ("NCCL_P2P_LEVEL=LOC torchrun train.py", [("NCCL_P2P_LEVEL", "LOC")]),
        ("#SBATCH --export=ALL,NCCL_NET=Socket", [("NCCL_NET", "Socket")]),
        ("# export NCCL_IB_DISABLE=1", []),
        ("echo $NCCL_NET", []),
        ("unset what NCCL needs", []),
        ("the log says: set NCCL_DEBUG to INFO", []),
    ],
)
def test_a_line_sets_what_it_names(line: str, found: list[tuple[str, str]]) -> None:
    assert list(assigned(line)) == found


def test_kubernetes_writes_name_and_value_in_two_lines() -> None:
    assert list(assigned('  value: "1"', "- name: NCCL_IB_DISABLE")) == [("NCCL_IB_DISABLE", "1")]
    assert not list(assigned('  value: "1"', "- name: trainer"))


@given(st.text(max_size=300), st.text(max_size=100))
def test_no_line_raises(line: str, above: str) -> None:
    assert all(name for name, _ in assigned(line, above))


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("+ export NCCL_NET=Socket", (Scope.SHELL, "", [("NCCL_NET", "Socket")])),
        ("[1,0]<stderr>: ++ export NCCL_NET=Socket", (Scope.SHELL, "", [("NCCL_NET", "Socket")])),
        ("0: + unset NCCL_NET", (Scope.SHELL, "", [("NCCL_NET", "")])),
        ("export NCCL_NET=Socket", (Scope.DUMP, "", [("NCCL_NET", "Socket")])),
        ("NCCL_NET=Socket", (Scope.DUMP, "", [("NCCL_NET", "Socket")])),
        ("user@node1:~$ NCCL_NET=Socket torchrun a.py", (Scope.RUN, "torchrun", [("NCCL_NET", "Socket")])),
        ("+ /opt/ompi/bin/mpirun -x NCCL_NET=Socket ./a", (Scope.RUN, "mpirun", [("NCCL_NET", "Socket")])),
        ("+ srun ./a", (Scope.RUN, "srun", [])),
        ("+ mpiexec.hydra -genv NCCL_NET Socket ./a", (Scope.RUN, "mpiexec.hydra", [("NCCL_NET", "Socket")])),
        ("+ podman run --env NCCL_NET=Socket img ./a", (Scope.RUN, "podman run", [("NCCL_NET", "Socket")])),
        ("$ kubectl exec t-0 -- env NCCL_NET=Socket ./a", (Scope.RUN, "kubectl exec", [("NCCL_NET", "Socket")])),
        (
            "+ apptainer exec --nv --env NCCL_NET=Socket a.sif ./a",
            (Scope.RUN, "apptainer exec", [("NCCL_NET", "Socket")]),
        ),
        ("+ flux run -n2 --env=NCCL_NET=Socket ./a", (Scope.RUN, "flux run", [("NCCL_NET", "Socket")])),
        ("+ bash -c 'export NCCL_NET=Socket; ./a'", (Scope.RUN, "bash -c", [("NCCL_NET", "Socket")])),
        ("$ NCCL_NET=Socket ./a", (Scope.RUN, "./a", [("NCCL_NET", "Socket")])),
        ("+ env NCCL_NET=Socket /opt/a", (Scope.RUN, "/opt/a", [("NCCL_NET", "Socket")])),
        ("/opt/a.py:12: UserWarning: NCCL_NET=Socket is slow", None),
        ("+ echo NCCL_NET=Socket", (Scope.ECHO, "", [("NCCL_NET", "Socket")])),
        ("# export NCCL_NET=Socket", None),
        ("0: # export NCCL_NET=Socket", None),
        ("If it hangs, set NCCL_NET=Socket and try again", None),
        ("hint: NCCL_P2P_DISABLE=1 may help", None),
        ("+ NCCL_NET=Socket", None),
        ("srun: error: gpu1: task 0: Exited with exit code 1", None),
    ],
)
def test_of_a_jobs_output_only_commands_and_dumps_set_something(line: str, found: object) -> None:
    assert stated_in(line) == found


@pytest.mark.parametrize(
    "line",
    [
        "+ echo 'set NCCL_P2P_DISABLE=1 if it is slow'",
        "set NCCL_P2P_DISABLE=1 if it is slow",
        "> Try NCCL_P2P_DISABLE=1 where GPUs have no P2P",
        "usage: run.sh [--no-p2p]   sets NCCL_P2P_DISABLE=1",
        "WARNING: NCCL_P2P_DISABLE=1 would disable NVLink",
        "+ # export NCCL_P2P_DISABLE=1",
    ],
)
def test_a_line_of_a_benchmark_that_prints_or_advises_sets_nothing(line: str) -> None:
    assert not list(commanded_in(line))


@pytest.mark.parametrize(
    "line",
    [
        "$ podman run --env NCCL_NET=Socket img ./all_reduce_perf -g 8",
        "+ flux run -n 8 --env=NCCL_NET=Socket ./all_reduce_perf",
        "    -x NCCL_NET=Socket \\",
        "% setenv NCCL_NET Socket",
        "set-env NCCL_NET=Socket ./all_reduce_perf",
    ],
)
def test_commands_of_any_form_above_a_table_count(line: str) -> None:
    assert list(commanded_in(line)) == [("NCCL_NET", "Socket")]


def test_a_pair_of_kubernetes_in_a_file_sets_what_it_names() -> None:
    assert stated_in('      value: "Socket"', "    - name: NCCL_NET") == (Scope.DUMP, "", [("NCCL_NET", "Socket")])
    assert stated_in('      value: "Socket"', "    - name: trainer") is None
