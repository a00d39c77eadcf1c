"""NCCL's decisions, replayed: the system it builds, the paths, the channels it finds, its tuning table and choices.

>>> import topodiag
>>> from topodiag.nccl import predict
>>> node = topodiag.diagnose(["fixture:hgx-a100"]).nodes[0]
>>> made = predict(node, nodes=2, version="2.28", env={"NCCL_IB_HCA": "^mlx5_4,mlx5_9"})
>>> made.accepted, made.graphs[0].channels, made.graphs[0].bw_inter
(True, 8, 24.0)
"""

from __future__ import annotations

from topodiag.nccl.predict import predict

__all__ = ["predict"]
