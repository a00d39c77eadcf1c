"""What causes cost: machines as they should be, with one cause in them, with all, and what was measured."""
