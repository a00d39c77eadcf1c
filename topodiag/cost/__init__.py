"""What communication costs on a topology: NCCL's own decisions and the alpha-beta model."""
