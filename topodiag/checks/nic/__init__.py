"""The checks of network cards and their ports: state, rate, errors, settings, number."""
