"""The outputs: terminal, JSON, HTML, Prometheus, Nagios. They translate results and decide nothing."""
