"""What RCCL 2.21.5 decides otherwise than NCCL 2.21: sets of rings that it knows beforehand, its search, its channels.

The system graph and the search are NCCL's (`nccl.graph`, `nccl.search`), which ask `System.rccl` where RCCL differs.
"""
