"""The page of a verdict. It draws what the verdict says and decides nothing."""
