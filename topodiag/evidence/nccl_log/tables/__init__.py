"""Facts of logs as tables: in memory, on disk, between processes."""
