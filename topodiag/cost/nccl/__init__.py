"""NCCL's decisions, replayed: the system it builds, the paths, the channels it finds, its tuning table and choices."""
