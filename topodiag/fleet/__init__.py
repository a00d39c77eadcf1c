"""Logs and bundles of a whole cluster: read by all cores of a machine or by a dask cluster, and compared."""
