"""Keys of documents that are not named as what they are read from: `key=attribute` by the definition of a schema.

A path such as `run.origin.line` is None behind a value that is None.
"""

from __future__ import annotations

READ_FROM = {
    "Finding": "follows_from=follows",
    "Progress": "source=first.source first_line=first.line last_line=last.line",
    "Unexplained": "source=origin.source line=origin.line nodes=count",
    "GpusSeen": "status=sight",
    "Communicator": "role_confidence=role_sure",
    "Event": "time_s=ts source=origin.source line=origin.line",
    "StepLevel": "time_s=time",
    "StepPace": "source=series.source rank=series.rank host=series.host unit=series.unit",
    "Job": "steps=paces",
    "Row": (
        "bytes=size time_us=best.time_us algbw_gbs=best.algbw_gbs busbw_gbs=best.busbw_gbs wrong=best.wrong type=dtype"
    ),
    "Regime": "low_bytes=low high_bytes=high alpha_range_us=alpha_range beta_range_gbs=beta_range",
    "Fit": "plateau_busbw_gbs=plateau_gbs bound_from_bytes=bound_from",
    "BenchGate": "bytes=size measured_gbs=gbs",
    "Benchmark": (
        "collective=run.collective nranks=run.nranks nranks_why=run.nranks_why hosts=run.hosts devices=run.devices "
        "nccl_version=run.nccl nccl_tests_version=run.version parameters=run.parameters settings=run.env "
        "average_busbw_gbs=run.average_gbs out_of_bounds=run.out_of_bounds complete=run.complete errors=run.errors "
        "notes=run.notes placement=run.placement source=run.source line=run.origin.line "
        "expected_busbw_gbs=expected.busbw_gbs"
    ),
    "Cause": (
        "check=finding.id severity=finding.severity confidence=finding.confidence message=finding.message "
        "where=finding.where fix=finding.fix evidence=finding.evidence cost=price predicted=price.predicted "
        "alone=price.alone all_gone=price.all_gone measured=price.measured agreement=price.agreement "
        "job_share=price.job_share says=price.says"
    ),
    "Consequence": "check=finding.id where=finding.where message=finding.message",
    "Unrelated": "check=id",
    "Moment": "source=origin.source line=origin.line",
    "Prediction": "nccl_version=version",
    "PredictDocument": "nccl_version=version",
    "PricedTier": "name=link.name alpha_us=link.alpha_us gbs=link.gbs crossover_bytes=link.crossover",
    "Placement": (
        "nodes=spread.nodes ranks_per_node=spread.per_node inside=spread.inside outside=spread.outside "
        "algorithm=priced.algorithm time_us=priced.time_us terms=priced.terms"
    ),
    "Way": (
        "latency_to_bytes=regimes.latency_to bandwidth_from_bytes=regimes.bandwidth_from "
        "gain_small=regimes.gain_small gain_large=regimes.gain_large"
    ),
    "StepCollective": (
        "collective=traffic.collective calls=traffic.calls bytes=traffic.size why=traffic.formula "
        "nodes=spread.nodes ranks_per_node=spread.per_node tier=spread.level time_us=total_us"
    ),
    "StepDocument": "misplacements=misplaced",
    "Demand": "collective=demand.collective calls=demand.calls bytes=demand.bytes",
    "Split": "ranks=example",
    "EqualFact": "nodes=known",
    "OddFact": "usual_nodes=usual_count known_nodes=total",
    "Cohort": "equal=same",
    "GapSide": "run=run.id",
    "SweepRun": "id=run.id kind=run.kind nodes=run.nodes rail=run.rail gpus=run.gpus reference_gbs=reference",
    "SweepDocument": "placements=gaps",
    "FailingNode": "node=host",
    "RisingCounter": "node=host counter=key",
    "HistoryDocument": "nodes=hosts",
}
