"""A cluster's logs and bundles: collected, read by all cores or by a dask cluster, compared and remembered."""
