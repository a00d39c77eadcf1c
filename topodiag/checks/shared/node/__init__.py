"""What several families ask of a node."""
