"""NCCL logs: from bytes to tables of facts (`fast`, `plain`), and from the facts of all files to jobs (`rebuild`)."""
