"""The room where the findings of one case meet: what explains what, and what it costs. It holds its interface only."""
