"""The checks of peer-to-peer between the GPUs of a node."""
