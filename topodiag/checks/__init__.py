"""The checks, by family: each check is a class with its page. They read the model, never the evidence."""
