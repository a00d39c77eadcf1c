"""Builds `topodiag-probe.pyz`, the collector as one file, from a checkout: `python3 tools/build_probe.py [OUTPUT]`.

From an installed topodiag: `topodiag probe -o topodiag-probe.pyz`. Both give the same bytes.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "probes")]

from topodiag.fleet.collect.archive import archive  # noqa: E402 - the checkout's, not an installed one


def build(target: Path) -> None:
    """Write the archive as a program that can be started."""
    target.write_bytes(archive())
    target.chmod(0o755)


def main() -> int:
    """Build to the named file, by default into the current folder."""
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else Path("topodiag-probe.pyz")
    build(target)
    sys.stdout.write(f"{target}{os.linesep}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
