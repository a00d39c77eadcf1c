"""Steps that are slow for what is no wire, as logs of any training show it, and the same words where all is well."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pasted import first_of, loud, said

IMAGENET = "Epoch: [{epoch}][{at:4d}/5005]\tTime  {time:.3f} ( 1.80)\tData  {data:.3f} ( 1.60)\tLoss 6.9 (6.9)"
TIMM = (
    "Train: 0 [{at:4d}/1251 (  1%)]  Loss: 6.9 (6.9)  Time: {time:.3f}s,  930.1/s  (0.9s, 1137.68/s)  Data: {data:.3f}"
)
MMCV = "2023-03-02 05:00:00,074 - mmdet - Epoch [1][{at}/7330]\tlr: 2e-02, time: {time}, data_time: {data}, loss: 1.4"
DETECTRON = (
    "eta: 1 day, 2:10:00  iter: {at}  total_loss: 1.2  time: {time}  last_time: 1.9  data_time: {data}  lr: 0.002"
)
JSON = '{{"step": {at}, "loss": 2.1, "step_time": {time}, "data_wait_time": {data}, "lr": 1e-4}}'
MILLISECONDS = "[rank0] iter {at} | loss 3.1 | iter time (ms): {time} | data loading (ms): {data} | fwd (ms): 60.1"
UNNUMBERED = "load_data_time: {data}, train_step_time: {time}"
MEGATRON = (
    " iteration {at:8d}/ 5000 | elapsed time per iteration (ms): {time} | global batch size: 128 | lm loss: 1.0E+01 |"
    "\n(min, max) time across ranks (ms):\n    forward-backward .....: (12700.10, 12702.40)\n"
    "    batch-generator ......: (9.22, {data})"
)
TORCH7 = "Epoch: [1][{at}/10000]     Time {time:.3f} Err 8.5480 Top1-%: 0.20 LR 1e-02 DataLoadingTime {data:.3f}"
SAVED = (
    "[rank0]:[titan] {day} 23:47:16,568 - root - INFO - Finished saving the checkpoint (or staging if async is enabled)"
    "in {s} seconds."
)
MEGATRON_SAVED = "(min, max) time across ranks (ms):\n    save-checkpoint ........: ({least}.11, {most}.02)\n"
MEGATRON_RANKS = "| MnRtt/Rnk: 2391.22ms/3 | MxRtt/Rnk: {most}ms/11 | MnEtpt/Rnk: 410.11TF/11 | MxEtpt/Rnk: 411.3TF/3"
COMPOSER = (
    "[batch=412/20000]:\n\t Train time/batch: 411\n\t Train Rank:0 MinRoundTripTime/Rank: {least}ms/2\n"
    "\t Train Rank:0 MaxRoundTripTime/Rank: 2393.06ms/0\n"
)
SCORES = (
    "GPU relative performance:\n Worst performing 2/16 ranks:\n  Rank=9 Node=h2 Score={score}\n"
    "  Rank=1 Node=h1 Score=0.98\n"
)
SECTIONS = (
    "=== Straggler Report at Step 10 ===\n  forward:\n    Min: 91.17ms, Max: {most}ms, Avg: 95.5ms, Slowdown: 1.1x\n"
    "    Rank 0: 91.17ms\n    Rank 1: {most}ms\n"
)


def steps(form: str, data: float, time: float, lines: int = 10) -> str:
    """Lines of a log whose steps all take as long."""
    return "\n".join(form.format(at=10 * at, epoch=0, time=time, data=data) for at in range(lines)) + "\n"


def now_and_then(form: str, long: float, own: float, every: int) -> str:
    """Forty lines of which some wait; the waiting is a part of the time."""
    waits = [long if at % every == every - 1 else 0.004 for at in range(40)]
    texts = (form.format(at=10 * at, epoch=0, time=round(own + w, 4), data=w) for at, w in enumerate(waits))
    return "\n".join(texts) + "\n"


SLOW = {
    "imagenet": steps(IMAGENET, 1.6, 1.8),
    "timm": steps(TIMM, 0.85, 1.1),
    "mmcv": steps(MMCV, 1.012, 1.312),
    "detectron2": steps(DETECTRON, 1.5123, 1.9321),
    "json": steps(JSON, 3.4, 4.21),
    "milliseconds": steps(MILLISECONDS, 690.4, 912.1),
    "beside the step": steps(UNNUMBERED, 3.1, 0.41),
    "megatron": steps(MEGATRON, 9310.2, 12936.1),
    "some steps": now_and_then(MMCV, 0.9, 0.2, 3),
    "key and value": steps("step={at} loss=1.92 step_time={time}s dataloader_time={data}s tokens/s=12044", 2.9, 3.32),
    "swin": steps(
        "INFO Train: [0/300][{at}/1251]\teta 1:01:02\ttime {time} (3.0)\tdata {data} (2.6)\tloss 6.9", 2.5, 2.9
    ),
    "dino": steps("Epoch: [0/100]  [{at:4d}/1251]  eta: 3:01:02  loss: 10.9  time: {time}  data: {data}", 1.4, 1.7),
    "openclip": steps("Train Epoch: 0 [ {at}/1096 (0%)] Data (t): {data} Batch (t): {time}, 13.1/s LR: 0.1", 3.1, 3.7),
    "torch7, beside the step": steps(TORCH7, 21.177, 1.95),
    "torch7, some steps": now_and_then(TORCH7, 20.0, 1.95, 5),
    "scores": SCORES.format(score=0.41),
}
WELL = {
    "imagenet": steps(IMAGENET, 0.002, 0.25),
    "an epoch's first batch": "".join(
        IMAGENET.format(
            epoch=n // 4, at=n % 4 * 10, time=22.1 if n % 4 == 0 else 0.25, data=21.9 if n % 4 == 0 else 0.002
        )
        + "\n"
        for n in range(16)
    ),
    "the first steps": steps(JSON, 40.1, 44.0, 1) + steps(JSON, 0.01, 4.2).replace('"step": ', '"step": 1'),
    "two steps": steps(JSON, 3.4, 4.21, 2),
    "one slow step": now_and_then(MMCV, 9.0, 0.2, 40),
    "torch7": steps(TORCH7, 0.043, 1.95),
    "torch7, one long wait": now_and_then(TORCH7, 21.2, 1.95, 40),
    "hidden behind the step": steps(JSON, 0.3, 4.21),
    "megatron": steps(MEGATRON, 13.2, 2936.1),
    "data that is no time": "\n".join(f"step {n} | step_time: 1.2 s | data: 512 | loss: 2.1" for n in range(12)),
    "counts of what is loaded": "".join(
        f"step {n} | step_time: 1.2 s | data_load: 512 | batch_load: 40.5 MB | loss: 2.1\n" for n in range(12)
    ),
    "slow by something else": "".join(
        MMCV.format(at=10 * n, time=1.9 if n % 3 == 0 else 0.3, data=0.1) + "\n" for n in range(40)
    ),
    "nemo saved": "Global Checkpoint Save : Rank: 0 : Start time: 1735812000.1s : Save duration: 42.112s\n",
    "saved": SAVED.format(day="2025-06-16", s=9.86),
    "saved seldom": "".join(
        f"2025-01-0{day} {hour:02d}:00:00,100 INFO Finished saving the checkpoint in 150.2 seconds.\n"
        for day in (1, 2)
        for hour in (0, 6, 12, 18)
    ),
    "megatron saved": MEGATRON_SAVED.format(least=12345, most=12399),
    "in the background": "INFO checkpoint staged in 3.1 s\nINFO async checkpoint saved in background in 540.2 s\n",
    "loaded": "INFO loaded checkpoint from /fsx/run7/step_2000 in 812 s\n",
    "settings": "save_checkpoint_interval_s: 1800\ncheckpoint_save_timeout: 1800 s\nsaving a checkpoint every 1800 s\n",
    "megatron's ranks": MEGATRON_RANKS.format(most=2393.06),
    "composer": COMPOSER.format(least=2391.22),
    "scores": SCORES.format(score=0.97),
    "sections": SECTIONS.format(most=101.2),
    "torchrun": "Setting OMP_NUM_THREADS environment variable for each process to be 1 in default, to avoid your system"
    " being overloaded, please further tune the variable\n",
}


@pytest.mark.parametrize("name", SLOW)
def test_what_makes_ranks_late_is_told(tmp_path: Path, name: str) -> None:
    first = first_of(tmp_path, SLOW[name])
    assert (first["id"], first["severity"]) == ("JOB008", "warning")
    assert first["evidence"]


@pytest.mark.parametrize("text", WELL.values(), ids=WELL)
def test_nothing_is_wrong(tmp_path: Path, text: str) -> None:
    assert loud(tmp_path, text) == []


def test_the_share_and_the_figures_are_told_and_that_no_wire_is_to_blame(tmp_path: Path) -> None:
    [finding] = said(tmp_path, steps(JSON, 3.4, 4.25))["findings"]
    assert "80 %" in finding["message"]
    assert "4.25 s a step" in finding["observed"]
    assert "3.4 s are waiting for data" in finding["observed"]
    assert "leave the links alone" in finding["fix"][-1]


def test_time_beside_the_step_is_added_to_it(tmp_path: Path) -> None:
    [finding] = said(tmp_path, steps(UNNUMBERED, 3.0, 1.0))["findings"]
    assert "75 %" in finding["message"]
