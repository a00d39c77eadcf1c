"""Puts the hand-made machines within reach of the report tests."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
