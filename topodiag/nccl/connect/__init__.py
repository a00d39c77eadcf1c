"""From graphs to a communicator: rings, trees, channels."""
