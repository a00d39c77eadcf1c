"""The checks of a host: limits, settings, devices, driver, storage, NUMA."""
