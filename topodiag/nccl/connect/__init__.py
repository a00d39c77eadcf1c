"""From graphs to a communicator: the graph that ranks agree on, its chains, their channels."""
