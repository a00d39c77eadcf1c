"""What a job shows while it runs: RAS, Inspector, diagnostics, profiler traces, stacks, steps, `topodiag watch`."""
