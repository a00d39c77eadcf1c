"""What applies a fix: topology files, nccl.conf, maps of ranks, node lists, pictures. They decide nothing."""
