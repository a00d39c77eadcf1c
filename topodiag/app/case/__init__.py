"""From paths to a case: its nodes, jobs and measured runs, topologies and clusters, and what says more of them."""
