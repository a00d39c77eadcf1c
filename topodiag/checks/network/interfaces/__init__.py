"""NET002: the interfaces by which ranks meet and send."""
