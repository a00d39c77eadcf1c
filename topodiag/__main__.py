"""`python -m topodiag`, for where the script is not on the search path."""

from topodiag.cli import main

main()
