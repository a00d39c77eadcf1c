"""From facts of all files to jobs: processes, communicators, connections, events."""
