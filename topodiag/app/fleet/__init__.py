"""Use cases about many nodes: collect their bundles, compare them, remember them."""
