"""The use cases: from paths, or the live node, to results. The only room that joins evidence, checks and verdict."""
