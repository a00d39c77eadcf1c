"""Logs of a whole cluster, read by all cores of a machine or by a dask cluster."""
