"""Settings that differ between the ranks of a job, and what NCCL reports of them."""
