"""The checks of the network as NCCL uses it: sockets, NICs left unused, rails, plug-ins, errors of RDMA."""
