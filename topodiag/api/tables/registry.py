"""Every table, one line each, by the kind of result that has it."""

from __future__ import annotations

from collections.abc import Mapping

from topodiag.api.tables import bench, job, node, place, result, topo, verdict
from topodiag.api.tables.interface import Table

DIAGNOSIS: Mapping[str, Table] = {
    "findings": result.FINDINGS,
    "outcomes": result.OUTCOMES,
    "nodes": node.NODES,
    "gpus": node.GPUS,
    "nics": node.NICS,
    "links": node.LINKS,
    "paths": node.PATHS,
    "matrix": node.MATRIX,
    "ranks": job.RANKS,
    "communicators": job.COMMUNICATORS,
    "connections": job.CONNECTIONS,
    "rings": job.RINGS,
    "events": job.EVENTS,
    "settings": job.SETTINGS,
    "choices": job.CHOICES,
    "steps": job.STEPS,
    "benchmarks": bench.BENCHMARKS,
    "benchmark_sizes": bench.BENCHMARK_SIZES,
    "inputs": result.INPUTS,
    "not_observed": result.NOT_OBSERVED,
    "unexplained": result.UNEXPLAINED,
    "unread": result.UNREAD,
    "causes": verdict.CAUSES,
    "consequences": verdict.CONSEQUENCES,
    "states": verdict.STATES,
    "ruled_out": verdict.RULED_OUT,
    "next_evidence": verdict.NEXT_EVIDENCE,
    "hosts": verdict.HOSTS,
    "timeline": verdict.TIMELINE,
    "clocks": verdict.CLOCKS,
}
PREDICTION: Mapping[str, Table] = {
    "paths": topo.PATHS,
    "graphs": topo.GRAPHS,
    "channels": topo.CHANNELS,
    "tuning": topo.TUNING,
    "choices": topo.CHOICES,
    "terms": topo.TERMS,
}
AUDIT: Mapping[str, Table] = {
    "findings": place.FINDINGS,
    "dimensions": place.AUDITED_DIMENSIONS,
    "groups": place.GROUPS,
    "map": place.MAP,
}
SOLUTION: Mapping[str, Table] = {
    "findings": place.FINDINGS,
    "dimensions": place.SOLVED_DIMENSIONS,
    "splits": place.SPLITS,
    "map": place.MAP,
}
TABLES: Mapping[str, Mapping[str, Table]] = {
    "diagnose, scan, logs, bench": DIAGNOSIS,
    "predict": PREDICTION,
    "audit": AUDIT,
    "solve": SOLUTION,
}
"""By the functions whose results have these tables."""
