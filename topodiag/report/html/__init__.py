"""The report as one file of HTML that stands by itself: it loads nothing, and is complete without its script."""
