"""A node: header, tree, matrix, NVLinks."""
