"""The checks of NCCL's settings, on nodes, in jobs and in runs."""
