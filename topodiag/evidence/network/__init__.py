"""RDMA devices, ports and interfaces, as tools and sysfs print them."""
