"""The checks of GPUDirect RDMA, on nodes and in jobs."""
