"""What people paste as well, and in which nothing of the communication is wrong: no error, no warning, of any text."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from topodiag.api import diagnose
from topodiag.model.errors import TopodiagError

TEXTS = {
    "pip": "ERROR: pip's dependency resolver does not take into account all the packages that are installed.\n",
    "training": "step 10 loss 2.1 lr 1e-4\nWARNING: gradient overflow, skipping step\nTraining finished\n",
    "caught": "2024-05-06 08:11:01 WARNING retry: requests.ConnectionError: HTTPSConnectionPool:"
    " Max retries exceeded\n2024-05-06 08:11:05 INFO downloaded\n",
    "list of xids": "### Xid quick reference\n- 79: GPU has fallen off the bus \u2192 drain, cold power cycle\n"
    "* 74 NVLink\n- 119/120: GSP timeout \u2192 reset\n",
    "looked for a file": "$ cat /etc/nccl.conf\ncat: /etc/nccl.conf: No such file or directory\n"
    "# Avg bus bandwidth    : 372.0\n",
    "deprecated": "FutureWarning: `resume_download` is deprecated\nUserWarning: the GPU is not used by default\n",
    "nccl": "h:1:1 [0] NCCL INFO Bootstrap : Using eth0:10.0.0.2<0>\nh:1:1 [0] NCCL INFO NET/Plugin: No plugin"
    " found (libnccl-net.so)\nh:1:1 [0] NCCL INFO Using network IB\n",
    "destroyed": "h:1:44 [0] NCCL INFO comm 0x1 rank 0 nranks 8 cudaDev 0 busId 1000 - Destroy COMPLETE\n",
    "boot": "[    3.2] NVRM: loading NVIDIA UNIX x86_64 Kernel Module  550.54.15\n[    8.1] mlx5_core 0000:5e:00.0: "
    "firmware version: 28.39.1002\n[    9.9] mlx5_core 0000:5e:00.0 ens1np0: Link up\n",
    "other devices": "[1.1] usb 1-1: device not accepting address 4, error -71\n[1.2] ata3: SATA link down\n",
    "counters of a function": "mlx5_core 0000:17:00.0: mlx5_cmd_check:810:(pid 1): ACCESS_REG(0x805) op_mod(0x1)"
    " failed, status bad operation(0x2), syndrome (0x305684)\n",
    "service": "Active: active (running) since Mon 2024-05-06 08:11:01 UTC; 2h ago\n",
    "pods": "NAME      READY   STATUS      RESTARTS   AGE\nworker-0  0/1     Completed   0          12m\n",
    "pods that start": "NAME     READY   STATUS           RESTARTS   AGE\nw-0  0/1  ContainerCreating   0  5s\n",
    "slurm": "srun: job 1123 queued and waiting for resources\nsrun: job 1123 has been allocated resources\n",
    "queue": "JOBID PARTITION NAME USER ST TIME NODES NODELIST(REASON)\n1123 train llm alice PD 0:00 32 (Resources)\n",
    "partitions": "PARTITION AVAIL  TIMELIMIT  NODES  STATE NODELIST\ntrain*     up   infinite     1  drain n12\n",
    "containers": 'CONTAINER ID   IMAGE   COMMAND   CREATED   STATUS      PORTS   NAMES\n1a2b   torch   "bash"'
    "   2 hours ago   Exited (0) 1 hour ago     t1\n",
    "health": "health-agent: gpu 0..7: healthy\nhealth-agent: nvlink errors: 0\nhealth-agent: ib ports: 8 up, 0 down\n",
    "playbook": "failed: 0\nPLAY RECAP\nnode1 : ok=12 changed=0 unreachable=0 failed=0 skipped=1\n",
    "notes of a release": "- use O_RDWR as fallback if O_RDONLY returns EIO\n- fix a bug in e2fsck, which could fail"
    ' with ENOSPC\n- Fix "Too many open files" when using --multifile.\n- Handle EROFS before calling mount()\n',
    "a handbook of errors": "* `EMFILE` (Too many open files in system): Maximum number of file descriptors\n",
    "no fabric to manage": "# systemctl start nvidia-fabricmanager\nJob for nvidia-fabricmanager.service failed"
    " because the control process exited with error code.\n# nvidia-smi -L\nGPU 0: NVIDIA GeForce RTX 3050"
    " (UUID: GPU-0a1b2c3d-0000-0000-0000-000000000001)\n",
    "make": "make[1]: *** [Makefile:12: all] Error 2\n",
    "git": "error: failed to push some refs to 'origin'\n",
    "logger": "wandb: Network error (ConnectTimeout), entering retry loop.\n",
    "cloud": "An error occurred (InsufficientInstanceCapacity) when calling the RunInstances operation\n",
    "vllm": "INFO custom_all_reduce.py: Custom allreduce is disabled because your platform lacks GPU P2P capability\n",
    "gloo": "[Gloo] Rank 0 is connected to 7 peer ranks. Expected number of connected peer ranks is : 7\n",
    "tests": "FAILED tests/test_a.py::test_b - AssertionError: assert 1 == 2\n1 failed, 3 passed in 2.1s\n",
    "interrupted": 'Traceback (most recent call last):\n  File "a.py", line 1, in <module>\nKeyboardInterrupt\n',
    "df": "Filesystem      Size  Used Avail Use% Mounted on\n/dev/nvme0n1p2  880G  401G  435G  48% /\n"
    "/dev/loop3       64M   64M     0 100% /snap/core20/1\n",
    "mount": "10.0.0.9:/export on /scratch type nfs4 (rw,relatime,vers=4.2,hard,timeo=600)\n",
    "barrier": "INFO:torch.distributed: Rank 0: Completed store-based barrier for key:1 with 8 nodes.\n",
    "loss": "step 100 loss nan\nWARNING loss is nan, stopping\n",
    "replaced": "INFO: 2 dead workers were replaced; pool is healthy\n",
    "retried": "connect to 10.0.0.2:29500 failed, retrying in 1 s\nconnected to 10.0.0.2:29500\n",
    "advice": "If the port is down, check the cable. The GPU may be throttled when it is hot; see the docs.\n",
    "yaml": "gpu:\n  state: failed\n  retry: 3\n",
    "free": "scheduler: 3 of 8 GPUs available, 2/8 nodes free\n",
    "identity": "$ cat /sys/kernel/iommu_groups/*/type | sort | uniq -c\n    112 identity\n",
    "imex": "Nodes From\\To  0   1\n0              C   C\n1              C   C\nDomain State: UP\n",
    "no driver for adapters that are not there": "libibverbs: Warning: couldn't load driver 'librxe-rdmav25.so':"
    " librxe-rdmav25.so: cannot open shared object file: No such file or directory\n",
    "wheels": "nvidia-nccl-cu12          2.29.3\n",
}


@pytest.mark.parametrize("name", TEXTS)
def test_nothing_is_wrong(tmp_path: Path, name: str) -> None:
    file = tmp_path / "out.txt"
    file.write_text(TEXTS[name])
    try:
        document = json.loads(diagnose(str(file)).to_json())
    except TopodiagError:
        return  # nothing that topodiag reads
    assert [finding for finding in document["findings"] if finding["severity"] != "info"] == []
