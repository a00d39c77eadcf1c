"""Whether this machine has GPUs that a scan could look at."""

from __future__ import annotations

from os.path import exists

_DEVICES = ("/dev/nvidiactl", "/dev/kfd")
"""What the kernel's drivers of NVIDIA and AMD create once a GPU is there."""


def is_gpu_node() -> bool:
    """Whether a GPU's driver is loaded here."""
    return any(exists(device) for device in _DEVICES)
