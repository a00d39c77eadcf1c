"""JOB006 and JOB010: ranks that hang, and who keeps them."""
