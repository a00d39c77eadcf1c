"""The checks: one file per family, one class per check. They only read the model."""
