"""The drawings: SVG from values, one file each, through one helper. They decide nothing and open nothing."""
