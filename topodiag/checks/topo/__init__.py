"""The checks of topology files, and of the trees that NCCL builds of a machine."""
