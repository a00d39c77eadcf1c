"""A job: summary, ranks, rings, transports, errors."""
