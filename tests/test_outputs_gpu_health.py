"""What health agents, controllers and scripts of a site print of GPUs: the fault of a value, a row, a verdict or a note
comes first, and the same words without a fault accuse nobody."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pasted import loud, said

AMD_ECC = "GPU: 2\n    ECC:\n        TOTAL_CORRECTABLE_COUNT: 11\n        TOTAL_UNCORRECTABLE_COUNT: {}\n"
AMD_RAS = """GPU[1]: \tRAS INFO
         Block       Status  Correctable Error  Uncorrectable Error
           UMC      ENABLED                  2                    {}
          SDMA      ENABLED                  0                    0
"""
AMD_THROTTLE = "GPU: 3\n    THROTTLE:\n        PPT_VIOLATION_STATUS: ACTIVE\n        PROCHOT_VIOLATION_STATUS: {}\n"
AMD_MONITOR = """GPU  POWER   GPU_T   MEM_T   GFX_CLK   GFX%   MEM%
  0  612 W   61 °C   52 °C  2090 MHz  100 %   34 %
  1  608 W   60 °C   51 °C  2085 MHz  100 %   33 %
  2  188 W   97 °C   71 °C   612 MHz  {} %   12 %
  3  611 W   60 °C   52 °C  2092 MHz  100 %   34 %
"""
LOOP = "        HW Slowdown                       : {0}\n            HW Thermal Slowdown           : {0}\n" * 3
LINKS = "GPU  links_active  links_expected\n0    18            18\n1    {}            18\n"
STATES = "host  gpu  link  state\nn7    2    8     active\nn7    2    9     {}\nn7    2    10    active\n"
SLOW = """gpu   sm_clock   temp   util
0     1980 MHz   55     100%
1     1980 MHz   57     100%
2     {}
3     1975 MHz   56     100%
"""
DCGM_DMON = """#Entity   SMCLK        DVCCTR       TMPTR    GPUTL
ID
GPU 0     1980         0            58       100
GPU 2     765          {}           91       100
"""
DCGM_ERRORS = """+-----------------------------+------------------------------------------------+
| NVLINK Error Counts                                                          |
| GPU 4                                                                        |
+=============================+================================================+
| Link 3                      | Replay Error              {}                |
"""
DCGM_JSON = (
    '{{"DCGM Diagnostic":{{"test_categories":[{{"category":"Integration","tests":[{{"name":"pcie","results":[{{'
    '"status":"Fail","warnings":[{{"warning":"{}"}}]}}]}}]}}]}},"metadata":{{"DCGM Version":"4.2.3"}}}}\n'
)
EXPORTED = 'DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL{{gpu="4",Hostname="n7"}} {}\n'
GPUD = (
    '[{{"component": "accelerator-nvidia-fabric-manager", "states": [{{"health": "{}",'
    ' "reason": "NVIDIA-H100-80GB-HBM3 checked fabric state; fabric manager found but not active"}}]}}]\n'
)
SICHEK = (
    '{{"item":"gpu","checkers":[{{"name":"HWThermalSlowdown","status":"{}","detail":"GPU 4 thermal slowdown"}}]}}\n'
)
REDFISH = '{{"Severity":"{}","Message":"GPU_SXM_6 temperature sensor crossed a critical high threshold."}}\n'
SEL = "  9 | 08/11/2025 | 14:02:11 | {} | {} | Asserted\n"
IMEX = '{{"nodes":{{"0":{{"status":"READY","host":"10.0.0.4","connections":{{}}}}}},"status":"{}"}}\n'
GSP = (
    "[211.1] NVRM: _kgspLogRpcSanityCheckFailure: GPU2 sanity check failed 0xf waiting for RPC response from GSP.\n"
    "[211.2] NVRM: rpcRmApiControl_GSP: GspRmControl failed: hClient=0xc1d0007b; cmd=0x20800a4c; status=0x65\n"
)
MANAGER = (
    "[Jun 02 2025 13:22:41] [ERROR] [tid 2201] detected NVSwitch fatal error 20034 on fid:0 on NVSwitch pci bus"
    " id:00000000:C4:00.0 physical id:9 port:32\n"
)
NOTE = "$ nvidia-smi -L\nGPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-1)\n{}\n"
REPORT = "gpus in lspci      : 8\ngpus in nvidia-smi : {}\n"
RATIO = "NVLINK CHECK\nGPU1 OK (18/18)\nGPU2 {}\n"
KEYED = "gpu0: sm=1965MHz util=100%\ngpu1: sm=1980MHz util=100%\ngpu2: sm={}\ngpu3: sm=1965MHz util=100%\n"
BURN = "100.0%  proc'd: 51 (49210 Gflop/s) - 51 (49101 Gflop/s) - 18 ({} Gflop/s)   errors: 0 - 0 - 0   temps: 71 C\n"
ROWS = """|   0  NVIDIA A100-SXM4-80GB          On  |   00000000:07:00.0 Off |                    0 |
| N/A   30C    P0              62W /  400W |       0MiB /  81920MiB |      0%      Default |
|   1  NVIDIA A100-SXM4-80GB          On  |   00000000:0F:00.0 Off |                    {} |
| N/A   31C    P0              61W /  400W |       0MiB /  81920MiB |      0%      Default |
"""
CHANNEL = "ls: cannot access '/dev/nvidia-caps-imex-channels/channel0': No such file or directory\n"
HISTORY = "[51231.1] NVRM: GPU2 RPC history (CPU -> GSP):\n"
VIOLATIONS = """# gpu  pviol  tviol
# Idx      %   bool
    0      0      0
    2     98      {}
"""
QUERIED = (
    '{{"status":"success","data":{{"result":[{{"metric":{{"__name__":"DCGM_FI_DEV_CLOCK_THROTTLE_REASONS","gpu":"3"}},'
    '"value":[1741000000,"{}"]}}]}}}}\n'
)
SITE = (
    '{{"gpus": [{{"id": 0, "sm_mhz": 1980, "util": 99}}, {{"id": 1, "sm_mhz": 1980, "util": 99}},'
    ' {{"id": 2, "sm_mhz": 510, "util": {}}}, {{"id": 3, "sm_mhz": 1965, "util": 98}}]}}\n'
)
REASONS = '{{"OperatingSpeedMHz":345,"ThrottleReasons":["{}"],"BandwidthPercent":0}}\n'
LIMITS = "".join(
    f"GPU 00000000:{at}B:00.0\n        Current Power Limit               : {{{at - 1}}}.00 W\n" for at in range(1, 5)
)
UP = "host,gpu,nvlinks_up,nvlinks_total\nn1,0,18,18\nn1,2,{},18\n"
LINK_OF_MANAGER = (
    "[Aug 01 2025 11:12:13] [ERROR] [tid 77] detected GPU NVLink fatal error on GPU pci bus id:00000000:DB:00.0"
    " physical id:5 port:7\n"
)
SPARK = """s1:212:212 [0] NCCL INFO NCCL version 2.28.3+cuda13.0
s1:212:212 [0] NCCL INFO NET/IB : Using [0]rocep1s0f0:1/RoCE [RO]; OOB enp1s0f0np0:10.0.0.1<0>
s1:212:220 [0] NCCL INFO NET/IB : GPU Direct RDMA Disabled for HCA 0 'rocep1s0f0'
s1:212:220 [0] NCCL INFO comm 0x5 rank 0 nranks 2 cudaDev 0 nvmlDev 0 busId {} commId 0x77 - Init START
s1:212:220 [0] NCCL INFO Channel 00/0 : 1[0] -> 0[0] [receive] via NET/IB/0
"""


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ('"Time","host","gpu","DCGM_FI_DEV_ECC_DBE_VOL_TOTAL"\n"2025-05-05 10:00:00","n31","4","2"\n', "GPU002"),
        ("gpu,dbe_volatile,sbe_volatile,pending_retire\n0,0,0,no\n2,1,0,yes\n", "GPU002"),
        (DCGM_JSON.format("A row remapping failure happened: row remapping failed for GPU 2."), "GPU002"),
        (AMD_MONITOR.format(100), "GPU004"),
        (SICHEK.format("abnormal"), "GPU004"),
        (SLOW.format("705 MHz    52     100%"), "GPU004"),
        (DCGM_DMON.format(72), "GPU004"),
        (SEL.format("Temperature GPU3_TEMP", "Upper Critical going high"), "GPU004"),
        (LINKS.format(14), "NVL001"),
        (STATES.format("inactive"), "NVL001"),
        (DCGM_ERRORS.format(30112), "NVL003"),
        (DCGM_JSON.format("Detected 55 nvlink_flit_crc_error_count_total NvLink errors on GPU 2"), "NVL003"),
        (EXPORTED.format(44), "NVL003"),
        (GPUD.format("Unhealthy"), "NVL005"),
        (IMEX.format("DOWN"), "NVL005"),
        (KEYED.format("480MHz util=100%"), "GPU004"),
        (BURN.format(17432), "GPU006"),
        (ROWS.format(3), "GPU002"),
        (CHANNEL, "HST002"),
        (HISTORY, "GPU003"),
        (VIOLATIONS.format(1), "GPU004"),
        (SITE.format(99), "GPU004"),
        (LIMITS.format(700, 350, 700, 700), "GPU004"),
        (UP.format(17), "NVL001"),
        (LINK_OF_MANAGER, "NVL003"),
        ("(setup pid=3110) No devices were found\n", "GPU001"),
        ('[{"gpu":0,"links_up":18,"links_expected":18},{"gpu":2,"links_up":9,"links_expected":18}]\n', "NVL001"),
        (GSP, "GPU003"),
        (MANAGER, "GPU003"),
        (SEL.format("Module/Board GPU_5_Status", "Device Removed/Device Absent"), "GPU001"),
        ("[1.2] amdgpu 0000:c1:00.0: amdgpu: device lost from bus!\n", "GPU001"),
        ("#4  0x00007f1e5c in ncclShmOpen (shmPath=0x7f) from libnccl.so.2\nFatal Python error: Bus error\n", "HST001"),
    ],
)  # fmt: skip
def test_the_fault_comes_first(tmp_path: Path, text: str, first: str) -> None:
    answer = said(tmp_path, text)
    assert [finding["id"] for finding in answer["findings"]][:1] == [first]
    assert answer["verdict"]["state"] != "healthy"


@pytest.mark.parametrize(
    "text",
    [
        AMD_ECC.format(0),
        AMD_RAS.format(0),
        AMD_THROTTLE.format("NOT ACTIVE"),
        AMD_MONITOR.format(0),
        LOOP.format("Not Active"),
        "clocks_throttle_reasons.active: 0x0000000000000004\n",  # a power cap
        SLOW.format("345 MHz    35     0%"),
        DCGM_DMON.format(0).replace("765 ", "1975"),
        SICHEK.format("normal"),
        REDFISH.format("OK"),
        SEL.format("Temperature GPU3_TEMP", "Upper Critical going high")
        + SEL.format("Temperature GPU3_TEMP", "Upper Critical going high").replace("Asserted", "Deasserted"),
        LINKS.format(18),
        STATES.format("active"),
        DCGM_ERRORS.format(3),
        EXPORTED.format(1),
        GPUD.format("Healthy"),
        IMEX.format("UP"),
        VIOLATIONS.format(0),
        QUERIED.format(4),
        SITE.format(0),
        REASONS.format("Idle"),
        LIMITS.format(700, 700, 700, 700),
        UP.format(18),
        "GPU health summary (24 h): lost 0, Xid 0, DBE 0, remap pending 0, NVLink down 0, throttled 0\n",
        "FAILED attempt 3/8 to reach the monitor of gpu 2\n",
        "epoch 3/8: upload failed for 1/8 shards\n",
        'expr: increase(x[10m]) > 0\nsummary: "GPU {{ $labels.gpu }} has uncorrectable ECC errors"\n',
        "gpu,link,nvlink_replay,nvlink_recovery,nvlink_crc\n1,11,2,0,55\n",
        'fatal: [h3]: FAILED! => {"changed": false, "msg": "No package matching foo"}\n',
        "nvidia-imex[2210]: Domain State: UP\n",
        "fabric:\n  state: completed\n  route_unhealthy: false\n",
        REPORT.format(8),
        RATIO.format("OK (18/18)"),
        KEYED.format("345MHz util=0%"),
        BURN.format(48000),
        ROWS.format(0),
        'ALERTS{alertname="GpuDoubleBitEcc",alertstate="firing",gpu="2"} 0\n',
        "gpu, ecc_uncorrected_aggregate, ecc_uncorrected_volatile\n1, 2, 0\n",  # of a life, not of today
        "198 Offline_Uncorrectable   0x0030   100   100   000    Old_age   Offline      -       3\n",  # a disk
        "fec_uncorrectable_blocks: 4\n",
        "nvlink_replay_errors=0 nvlink_crc_errors=14 gpu=3\n",
        "HW Thermal Slowdown (reducing the core clocks by a factor of 2 or more) is engaged.\n",
        "All GPUs show SW Power Cap active at 700 W under load, clocks 1755 MHz. That is expected.\n",
        "A: The driver reports Xid 79 when a GPU has fallen off the bus. Drain the node.\n",
        "| 79  | GPU has fallen off the bus | RESET_GPU |\n| 119 | GSP RPC Timeout | RESET_GPU |\n",
        "04:22 alert FIRING GpuLost node=h100-07 gpu=3\n05:02 alert RESOLVED GpuLost node=h100-07 gpu=3\n",
        NOTE.format("The clocks are as they should be again, and none of the cards throttles."),
        SPARK.format("f01000"),  # its memory is the host's
    ],
)
def test_nobody_is_accused(tmp_path: Path, text: str) -> None:
    assert loud(tmp_path, text) == []
