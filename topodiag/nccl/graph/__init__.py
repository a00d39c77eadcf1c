"""NCCL's system: devices, links, paths, and what reaches what."""
