"""Wrong results of a benchmark."""

from __future__ import annotations

from collections.abc import Sequence

from topodiag.checks.interface import BenchCheck
from topodiag.checks.shared.bench_text import place, size_text, title
from topodiag.model.bench import Benchmark
from topodiag.model.finding import Finding, Outcome


class WrongResults(BenchCheck, id="BEN004"):
    """BEN004: a collective returned wrong results

    What it finds
        A `#wrong` above 0 in a row of the table, or `Out of bounds values : N FAILED` below it.

    Why it matters
        Data that arrived is not what was sent: gradients of a training are wrong without an error. Seen with bad memory
        of a GPU or NIC, PCIe reordering (relaxed ordering forced on an old NCCL), broken peer access over ACS or IOMMU,
        and firmware faults.

    Evidence it reads
        The column `#wrong` (older: `error` above its bound) and the line `Out of bounds values`.

    When it stays silent
        Validation was off (-c 0: N/A): not applicable. No row was completed: unknown. The older column `error` is a
        rounding difference; it counts only by the line below the table.

    How to confirm
        Run the same command with -c 1 -n 1 -w 0. Halve the GPUs until one pair, NIC or GPU is left, then look at it:
        nvidia-smi -q -d ECC,ROW_REMAPPER
        dmesg | grep -i xid
        NCCL_P2P_DISABLE=1 all_reduce_perf -c 1 -g 2            right results now: the fault is in P2P
        NCCL_NET_GDR_LEVEL=LOC all_reduce_perf -c 1 -g 2        right results now: the fault is in GPUDirect RDMA

    How to fix
        Take the GPU, NIC or node out that the halving leaves. Peer access broken: ACS or IOMMU in the way (PCI004).
        Relaxed ordering: NCCL_IB_PCI_RELAXED_ORDERING=0, the NIC's PCI_WR_ORDERING back to per_mkey.

    References
        nccl-tests src/common.cu (out of bounds values); NVIDIA GPU memory error management.
    """

    def observe(self, judged: Benchmark, peers: Sequence[Benchmark]) -> Outcome:
        run = judged.run
        if not run.rows:
            return self.unknown(judged, "no row was completed")
        checked = sum(any(timing.wrong is not None for timing in (row.out_of_place, row.in_place)) for row in run.rows)
        if run.wrong_values:
            return self.with_findings(judged, [self._wrong(judged, run.wrong_values, checked)])
        if run.parameters.get("validation") == "0" or (not checked and run.out_of_bounds is None):
            return self.not_applicable(judged, "validation was off (-c 0)")
        return self.clean(judged, f"{checked} sizes checked" if checked else "no value out of bounds")

    def _wrong(self, judged: Benchmark, total: float, checked: int) -> Finding:
        run = judged.run
        wrong = [row for row in run.rows if row.wrong_values > 0]
        sizes = ", ".join(dict.fromkeys(size_text(row.size) for row in wrong[:3]))
        where = f" at {sizes}{' and more' if len(wrong) > 3 else ''}" if wrong else ""
        return self.finding(
            self.where(judged.run.hosts),
            "wrong",
            f"{title(run)} returned {total:.0f} wrong values{where}",
            observed=f"{len(wrong)} of {checked} rows wrong, {run.out_of_bounds or 0} out of bounds ({place(judged)})",
            cost="no result of these ranks can be trusted",
            evidence=tuple(row.origin for row in wrong) or (run.origin,),
        )
