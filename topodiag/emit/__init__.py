"""Artefacts that apply a fix: NCCL_TOPO_FILE, nccl.conf, pictures. They translate; they decide nothing."""
