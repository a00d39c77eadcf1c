"""Where the program starts: `topodiag`, and `python -m topodiag` where the script is not on the search path.

Nothing is imported before the guard, so that Ctrl-C during the imports ends in one line, too.
"""

from __future__ import annotations

import sys
from typing import NoReturn


def main() -> NoReturn:
    """Load the command line, run it, and exit with its code."""
    try:
        from topodiag.cli import main as run  # noqa: PLC0415 - inside of the guard

        run()
    except KeyboardInterrupt:
        if sys.stderr is not None:
            sys.stderr.write("topodiag: interrupted\n")
        raise SystemExit(130) from None


if __name__ == "__main__":
    main()
