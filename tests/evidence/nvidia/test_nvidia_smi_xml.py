"""What is left of a report of `nvidia-smi -q -x` that is cut, or nested without an end; its readings are in a table."""

from tests.evidence.filled import read, text_of, value

V12 = text_of("nvidia-smi-xml", "V12")


def test_a_cut_report_keeps_the_gpus_before_the_cut() -> None:
    draft, parsed = read("nvidia-smi-xml", V12[: V12.index("<uuid>GPU-11111111-2222-3333-4444-555555555551")])
    assert value(draft.gpu(index=0), "compute_mode") == "Exclusive_Process"
    assert value(draft.gpu(index=1), "name") == "NVIDIA H100 80GB HBM3"
    assert value(draft.gpu(index=1), "compute_mode") is None
    assert parsed.unread_count >= 1


def test_endless_nesting_is_refused() -> None:
    draft, _ = read("nvidia-smi-xml", V12.replace("</gpu>", "<a>" * 100_000 + "</gpu>", 1))
    assert value(draft.gpu(index=0), "name") == "NVIDIA H100 80GB HBM3"
    assert value(draft.gpu(index=1), "pstate") == 2
