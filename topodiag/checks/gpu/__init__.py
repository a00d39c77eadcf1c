"""The checks of GPUs: lost, memory, clocks, recovery, tests, Xid."""
