"""What the host says: CPU, PCI tree, kernel, services, settings, processes."""
