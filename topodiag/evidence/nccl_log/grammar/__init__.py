"""What NCCL prints: the form of each line, in every version."""
