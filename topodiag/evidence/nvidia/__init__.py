"""What NVML and nvidia-smi say."""
