"""What was emitted, in words."""
