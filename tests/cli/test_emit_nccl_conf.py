"""`topodiag emit nccl-conf` as users run it."""

from __future__ import annotations

from pathlib import Path

from topodiag.cli.emit.nccl_conf import nccl_conf


def test_every_option_is_in_the_guide() -> None:
    guide = (Path(__file__).parents[2] / "docs" / "emit.md").read_text()
    options = [param.opts for param in nccl_conf.params if param.opts[0].startswith("-")]
    texts = [names for names in options if any(f"{name}{end}" in guide for name in names for end in " `")]
    assert texts == options
