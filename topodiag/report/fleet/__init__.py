"""What `topodiag fleet` prints."""
