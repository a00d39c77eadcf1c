"""What all rooms share: nodes, jobs, runs, findings, as values and functions over them. Knows only words and lazy."""
