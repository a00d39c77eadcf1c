"""What NVML, nvidia-smi, DCGM and tests of GPUs say."""
