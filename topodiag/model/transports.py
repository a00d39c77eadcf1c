"""Transports as NCCL prints them (`P2P/CUMEM`, `NET/IB/3/GDRDMA/Shared`), in the words of views and drawings."""

from __future__ import annotations


def bare_transport(label: str) -> str:
    """`NET/IB/3/GDRDMA/Shared` as `NET/IB`: without device, GPUDirect RDMA and sharing of connections."""
    return "/".join(part for part in label.split("/") if not (part.isdigit() or part.startswith(("GDRDMA", "Shared"))))


def uses_gdr(label: str) -> bool:
    return any(part.startswith("GDRDMA") for part in label.split("/"))


def is_net(label: str) -> bool:
    return label.startswith(("NET/", "COLLNET/"))


def short_transport(label: str) -> str:
    """`P2P/CUMEM/read` as `P2P`, `NET/IB/3/GDRDMA` as `IB+GDR`: for a cell."""
    parts = bare_transport(label).split("/")
    word = parts[1] if parts[0] == "NET" and len(parts) > 1 else parts[0]
    return f"{word}+GDR" if uses_gdr(label) else word
