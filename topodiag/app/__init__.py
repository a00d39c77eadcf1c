"""The use cases: from paths, or the live node, to results. The only room that knows all stages; it draws nothing."""
