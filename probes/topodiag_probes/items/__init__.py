"""The probes, one file per kind of evidence."""
