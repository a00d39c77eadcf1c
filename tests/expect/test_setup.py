"""What a run says about the machine that it ran on, and what had to be assumed."""

from dataclasses import replace

import pytest

from tests.expect.measured_runs import run
from topodiag.expect.setup import NoSetupError, setup_of
from topodiag.model.bench import BenchDevice
from topodiag.model.finding import Confidence
from topodiag.model.nccl_versions import NEWEST, spell_version
from topodiag.nccl.topo.changes import gpus_of, nets_of

H100 = "NVIDIA H100 80GB HBM3"


def test_gpu_names_and_ranks_per_host_stand_for_a_machine_with_low_confidence() -> None:
    setup = setup_of(run(gpu=H100))
    assert setup.machine == "DGX H100 (by GPU names)"
    assert setup.confidence is Confidence.LOW
    assert (setup.nodes, setup.per_node, setup.network) == (1, 8, "")


def test_machines_that_fit_as_well_are_kept() -> None:
    setup = setup_of(run(gpu=H100, ranks=16, hosts=2))
    assert {"a3-highgpu-8g", "a3-megagpu-8g"} & {variant.name for variant in setup.others}


def test_one_gpu_a_node_may_use_one_nic_or_all_of_a_machine_that_is_guessed() -> None:
    guessed = setup_of(run(gpu="NVIDIA GH200 120GB", ranks=2, hosts=2))
    assert [len(nets_of(variant.tree)) for variant in guessed.others] == [1]
    assert guessed.others[0].name.endswith("with one NIC in use")
    named = setup_of(run(gpu="NVIDIA GH200 120GB", ranks=2, hosts=2), system="GH200 quad")
    assert named.others == ()


def test_a_system_by_its_name_beats_what_the_output_says() -> None:
    setup = setup_of(run(gpu=H100, ranks=16, hosts=2), system="a3-megagpu-8g")
    assert setup.machine == "a3-megagpu-8g"
    assert setup.confidence is Confidence.MEDIUM
    assert setup.network == "cloud"
    assert setup.others == ()


def test_gpus_without_a_rank_are_left_out_and_nics_are_not() -> None:
    setup = setup_of(run(ranks=20), system="DGX H100", nodes=10)
    assert sorted(gpus_of(setup.tree)) == [0, 1]
    assert len(nets_of(setup.tree)) == 8


def test_the_gpus_that_ranks_run_on_are_those_of_the_device_list() -> None:
    devices = tuple(BenchDevice(rank, "n0", number, H100) for rank, number in enumerate((4, 6)))
    setup = setup_of(replace(run(ranks=2), devices=devices), system="DGX H100")
    assert sorted(gpus_of(setup.tree)) == [4, 6]


def test_without_a_device_list_nodes_are_filled() -> None:
    setup = setup_of(run(ranks=96), system="DGX H100")
    assert setup.nodes == 12
    assert any("does not list" in assumption for assumption in setup.assumed)


def test_a_device_list_that_is_cut_short_still_tells_the_hosts() -> None:
    short = replace(run(gpu=H100, ranks=16, hosts=2), devices=run(gpu=H100, ranks=4, hosts=2).devices)
    setup = setup_of(short)
    assert (setup.nodes, setup.per_node) == (2, 8)


@pytest.mark.parametrize(
    ("said", "version"),
    [("2.21.5", "2.21"), ("2.12.12", "2.18"), ("2.99.1", spell_version(NEWEST)), ("", "2.28"), ("odd", "2.30")],
)
def test_a_version_outside_the_model_is_reckoned_as_the_nearest(said: str, version: str) -> None:
    setup = setup_of(run(nccl=said), system="DGX H100")
    assert setup.version == version
    assert bool(setup.versions) == (said == "")


def test_settings_that_take_a_transport_away_are_no_part_of_the_expectation() -> None:
    setup = setup_of(run(env={"NCCL_P2P_DISABLE": "1", "NCCL_ALGO": "Ring"}), system="DGX H100")
    assert dict(setup.env) == {"NCCL_ALGO": "Ring"}
    assert dict(setup.costly) == {"NCCL_P2P_DISABLE": "1"}
    assert any("NCCL_P2P_DISABLE" in assumption for assumption in setup.assumed)


def test_trays_of_a_rack_are_one_nvlink_domain_unless_a_setting_parts_them() -> None:
    assert setup_of(run(ranks=72), system="GB200 NVL72").domain == 18
    assert setup_of(run(ranks=72, env={"NCCL_MNNVL_ENABLE": "0"}), system="GB200 NVL72").domain == 1
    assert setup_of(run(ranks=8), system="DGX H100").domain == 1


@pytest.mark.parametrize(
    ("measured", "options", "why"),
    [
        (run(ranks=1), {"system": "DGX H100"}, "one rank"),
        (replace(run(), nranks=None), {"system": "DGX H100"}, "number of ranks"),
        (run(), {}, "names no GPU"),
        (run(gpu="AMD Instinct MI300X"), {}, "not in the catalogue"),
        (run(), {"system": "no such machine"}, "no system"),
        (run(ranks=16), {"system": "DGX H100", "nodes": 1}, "has 8 GPUs"),
        (run(ranks=16), {"system": "DGX H100", "nodes": 3}, "do not spread evenly"),
        (run(ranks=16), {"system": "HGX H100/H200 8-GPU", "nodes": 2}, "no NIC"),
        (run(ranks=9), {"system": "DGX H100"}, "placement is not known"),
    ],
)
def test_what_a_run_does_not_say_is_told(measured: object, options: dict[str, object], why: str) -> None:
    with pytest.raises(NoSetupError, match=why):
        setup_of(measured, **options)  # type: ignore[arg-type]


def test_hosts_with_different_numbers_of_ranks_have_no_expectation() -> None:
    devices = tuple(BenchDevice(rank, "n0" if rank < 5 else "n1", rank % 5, H100) for rank in range(8))
    with pytest.raises(NoSetupError, match="same number"):
        setup_of(replace(run(), devices=devices))
