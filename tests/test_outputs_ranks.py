"""What tools, schedulers and people say of ranks and jobs in words of their own: the cause comes first, and the same
words of a job that is well raise nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pasted import first_of, loud, said

ROOT = """[rank1]:[E ProcessGroupNCCL.cpp:1414] [PG 0 (default_pg) Rank 1] Process group watchdog thread terminated\
 with exception: NCCL error: remote process exited or there was a network error
train.py FAILED
Root Cause (first observed failure):
[0]:
  host      : gpu-a07
  rank      : 11 (local_rank: 3)
  exitcode  : 1 (pid: 7013)
  traceback : Traceback (most recent call last):
    File "/app/train.py", line 377, in main
      batch = collate(samples)
  ValueError: too many dimensions 'str'
"""
SACCT = """JobID             State ExitCode    Elapsed        NodeList
------------ ---------- -------- ---------- ---------------
88122        {0:>10}  {1:>7}   03:11:02    gpu-[01-16]
88122.0      {0:>10}  {1:>7}   03:11:04    gpu-[01-16]
"""
MPIRUN = """mpirun detected that one or more processes exited with non-zero status, thus causing
the job to be terminated. The first process to do so was:

  Process name: [[30154,1],5]
  Exit code:    1
"""
DESCRIBED = """    State:          Terminated
      Reason:       {}
      Exit Code:    {}
"""
ELSEWHERE = {
    "not entered": ("monitor: rank 118 (gpu-r14n07) has not entered allreduce 20412 for 600s\n", "JOB006"),
    "heartbeat": ("Did not get subsequent heartbeat. Waited 182.00 seconds for rank 21. Ending it.\n", "JOB006"),
    "not all": ("not all ranks reached the barrier after 300 s\n", "JOB006"),
    "counted": ("15 of 16 ranks joined all_gather number 12\n", "JOB006"),
    "stuck": ("trainer: worker 5 is stuck in backward since 04:12\n", "JOB006"),
    "culprit": ("Culprit rank 6; Error type: SIZE_OR_SYNTAX_MISMATCH, Expected input sizes: [[4]] does not match found"
                " input sizes: [[3]]\n", "JOB006"),
    "gloo": ("  what():  [enforce fail at /gloo/transport/tcp/pair.cc:446] op.preamble.length <= op.nbytes. 40 vs 4\n",
             "JOB006"),
    "mpi": ("[n12:40122] *** An error occurred in MPI_Allreduce\n[n12:40122] *** MPI_ERR_TRUNCATE: message truncated\n",
            "JOB006"),
    "ddp": ("RuntimeError: DDP expects same model across all ranks, but Rank 2 has 163 params, while rank 0 has"
            " inconsistent 160 params.\n", "JOB006"),
    "zero": ("RuntimeError: disagreement between rank0 and rank3: rank0: [1024], rank3: [1000]\n", "JOB006"),
    "meeting": ("rank 5 has not joined the rendezvous after 300 s\n", "JOB001"),
    "still": ("rank 44: still in dataloader.__next__ (waiting for a shard) for 1803 s; 127 others wait\n", "JOB006"),
    "rendezvous": ("F0302 rendezvous.cc:54] Termination timeout for `all-reduce` of 40 seconds exceeded. Exiting to"
                   " ensure a consistent program state. Expected 8 threads to join the rendezvous, but only 6 of them"
                   " arrived on time.\n", "JOB006"),
    "counts": ("  Communicator ranks have different collective operation counts\n", "JOB006"),
    "dump signal": ("[rank0]:[E302 ProcessGroupNCCL.cpp:1784] [PG ID 1 PG GUID 1(TP) Rank 0] Received a dump signal due"
                    " to a collective timeout from rank 5 and we will dump the debug info.\n",
                    "JOB006"),
    "mpich": ("MPIR_Allreduce(98): Message truncated; 4096 bytes received but buffer size is 2048\n", "JOB006"),
    "mpich ends": ("Abort(680126351) on node 5 (rank 5 in comm 0): Fatal error in internal_Bcast: Other MPI error\n",
                   "JOB009"),
    "nvshmem": ("/src/host/init/init.cu:972: non-zero status: 7 building transport map failed\n", "JOB005"),
    "given way": ("Job train-7b in project nlp was preempted to make room for another\n", "JOB009"),
    "conf files": ("gpu-01: NCCL_IB_TC=106\ngpu-02: NCCL_IB_TC=106\ngpu-03: NCCL_IB_TC=0\n", "JOB003"),
    "root cause": (ROOT, "JOB009"),
    "sacct": (SACCT.format("PREEMPTED", "0:0"), "JOB009"),
    "sacct timeout": (SACCT.format("TIMEOUT", "0:0"), "JOB009"),
    "sacct failed": (SACCT.format("FAILED", "1:0"), "JOB009"),
    "sacct cancelled": (SACCT.format("CANCELLED", "0:15"), "JOB009"),
    "scontrol": ("JobId=88122 JobName=llm\n   JobState=OUT_OF_MEMORY Reason=OutOfMemory ExitCode=0:125\n", "JOB009"),
    "mail": ("Subject: Slurm Job_id=88 Name=pre Failed, Run time 03:11:02, FAILED, ExitCode 1\n", "JOB009"),
    "ray": ("(autoscaler +12m) Node 10.0.0.7 (node id 7b0c) was marked dead because it missed heartbeats.\n", "JOB009"),
    "mpirun": (MPIRUN, "JOB009"),
    "described": (DESCRIBED.format("Error", 1), "JOB009"),
    "preempted": ("2m11s   Warning   Preempted   pod/train-3   Preempted by pod 8f3c on node gke-7\n", "JOB009"),
    "sigterm": ("WARNING - Received SIGTERM (preemption), saving a checkpoint\n", "JOB009"),
    "operator": ("PyTorchJob llama-sft is failed because 1 Worker replica(s) failed.\n", "JOB009"),
    "volcano": ("Warning  PodFailed  Pod job1-worker-2 of task worker failed with exit code 139\n", "JOB009"),
    "lightning": ("[rank: 4] Child process with PID 44120 terminated with code 1. Terminating all others\n", "JOB009"),
    "tcp btl": ("[n07:4211] mca_btl_tcp_frag_recv: readv failed: Connection reset by peer (104)\n", "JOB005"),
    "daemon": ("ORTE has lost communication with a remote daemon.\n", "JOB005"),
}  # fmt: skip
HARMLESS = {
    "not entered": "all ranks entered allreduce 20412\nrank 3 resumed after 2 s\n",
    "others": "rank 1 does not report metrics, only rank 0 does\nRank 3 is not the logging rank\n"
    "rank 2 not starting it\n",
    "advice": "If a rank is stuck, the others time out. Check whether rank 3 has not entered the barrier.\n",
    "retried": "WARNING rank 4 did not respond to ping, retrying\nINFO rank 4 responded after 0.3 s\n",
    "none": "straggler-detector: no stragglers among 128 ranks\nmissing ranks: []\n",
    "scored": "Straggler detection: relative GPU scores min 0.985 (rank 77) max 1.000\nno stragglers identified\n",
    "counted": "all 64 of 64 ranks joined\n[rank0]: waiting for rank 1 to finish its download\n",
    "compared": "rank 3: step 100 took 1.40 s vs 1.39 s median\n",
    "setting": "NCCL_ALGO   n1=Ring n2=Ring n3=Ring   ok\nNCCL version check across nodes: no mismatch\n",
    "sacct": SACCT.format("COMPLETED", "0:0"),
    "sacct running": SACCT.format("RUNNING", "0:0"),
    "described": DESCRIBED.format("Completed", 0),
    "script": "trap 'echo received SIGUSR1 before preemption' USR1\necho worker failed with exit code 3\n",
    "operator": "Normal  ExitedWithCode  Pod: kf.llama-sft-worker-5 exited with code 0\n",
    "sleeps": "  88123 Sl   futex_wait_queue     python train.py --rank 17\n",
    "conf files": "gpu-01: NCCL_HOSTID=1a\ngpu-02: NCCL_HOSTID=2b\ngpu-03: NCCL_HOSTID=2b\n",
    "rendezvous": "E0302 rendezvous.cc:31] This thread has been waiting for 20 seconds and may be stuck. Expected 8"
    " threads to join the rendezvous, but only 7 of them arrived on time.\n",
    "padded": "INFO: tensors of different shapes across ranks are padded before all_gather\n",
    "modes": "PreemptMode=REQUEUE\nPreemptType=preempt/partition_prio\n",
    "model": "size mismatch for lm_head.weight ignored (strict=False)\nguard failures differ, recompiling (worker 3)\n",
}


@pytest.mark.parametrize("name", ELSEWHERE)
def test_the_cause_comes_first(tmp_path: Path, name: str) -> None:
    text, check = ELSEWHERE[name]
    first = first_of(tmp_path, text)
    assert first["id"] == check
    assert first["evidence"]


@pytest.mark.parametrize("name", HARMLESS)
def test_nothing_is_wrong(tmp_path: Path, name: str) -> None:
    assert loud(tmp_path, HARMLESS[name]) == []


def test_the_launcher_names_who_failed_first(tmp_path: Path) -> None:
    [first, *_] = said(tmp_path, ROOT)["findings"]
    assert "ValueError" in first["message"]


def test_that_somebody_cancelled_a_job_is_told_as_info(tmp_path: Path) -> None:
    [finding] = said(tmp_path, SACCT.format("CANCELLED", "0:15"))["findings"]
    assert finding["severity"] == "info"
