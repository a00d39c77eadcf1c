"""Lines that say that something is wrong, and that no finding explains."""
