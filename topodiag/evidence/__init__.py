"""From raw bytes to facts: one file per source format, each fills the same draft of a node."""
