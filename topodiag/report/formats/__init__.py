"""Output that machines read: JSON, Prometheus, Nagios."""
