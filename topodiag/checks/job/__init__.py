"""The checks of jobs: start, settings, end, hang, slow ranks, shared GPUs."""
