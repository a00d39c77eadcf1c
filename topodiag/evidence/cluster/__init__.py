"""Clusters: nodes, switches and racks from Slurm, Kubernetes, fabric tools and tables."""
