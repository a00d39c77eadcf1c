"""How a job ends: its first error, processes that died."""
