"""How a job starts: init, versions, faults of a library, numbers of ranks."""
