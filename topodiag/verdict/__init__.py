"""Where the findings of one case meet: what explains what, what it costs, what is ruled out. It reads no evidence."""
