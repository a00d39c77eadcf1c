"""Results as others may read them: without names, addresses, serials and secrets."""
