"""What NCCL says of a job while it runs: answers of its RAS."""
