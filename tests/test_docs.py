"""What the documentation shows is what the program does."""

import doctest
import subprocess
import sys
from pathlib import Path

from topodiag.app import diagnose as pipeline
from topodiag.cli.scan import scan

ROOT = Path(__file__).parents[1]


def test_the_pages_of_the_checks_are_what_their_docstrings_say() -> None:
    argv = [sys.executable, str(ROOT / "tools" / "build_docs.py"), "--check"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == "docs/checks.md is current\n", done.stderr


def test_the_example_for_python_users_works() -> None:
    done = doctest.testmod(pipeline)
    assert (done.attempted, done.failed) == (3, 0)


def test_every_option_of_scan_is_in_the_user_guide() -> None:
    guide = (ROOT / "docs" / "user-guide.md").read_text()
    assert [each.opts for each in scan.params if not any(f"`{option}" in guide for option in each.opts)] == []
