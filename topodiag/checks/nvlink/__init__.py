"""The checks of NVLink and xGMI: links, pairs, rates, errors, the fabric."""
