"""NCCL's tuning model: latency and bandwidth by algorithm and protocol, and what it chooses."""
