"""NCCL logs: from bytes to tables of facts (`scan`, `plain`), and from the facts of all files to jobs (`rebuild`)."""
