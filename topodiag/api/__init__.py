"""The Python API: the commands as functions, their results as objects with tables. No click, no decision.

>>> import topodiag
>>> topodiag.diagnose("fixture:dgx-h100-gpu3-12of18-nvlink").table("findings")["id"].tolist()
['NVL001']
"""

from topodiag.api.calls import audit, bench, diagnose, logs, predict, scan, solve

__all__ = ["audit", "bench", "diagnose", "logs", "predict", "scan", "solve"]
