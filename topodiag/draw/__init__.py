"""The drawings: values as SVG, all through one helper, `svg.py`. They decide nothing and open nothing."""
