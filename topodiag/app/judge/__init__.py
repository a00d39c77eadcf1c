"""From a case to results: what the checks and the verdict say of it, and the files that follow."""
