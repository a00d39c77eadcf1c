"""A fleet over time: a store of captures and of what a watch saw, and the questions that it answers."""
