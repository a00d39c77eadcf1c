"""What the rules of several families ask of a job's first error."""

from __future__ import annotations

from topodiag.model.finding import Finding
from topodiag.verdict.scene import Scene

JOB_FAILS = ("JOB001",)
"""What every fault leaves that ends or blocks a job: ranks that did not come up are hardly ever the cause."""


def error_is(other: Finding, scene: Scene, *kinds: str) -> bool:
    """Whether the first error of the finding's job is of one of these kinds, or only consequences are in the log."""
    errors = scene.errors(other)
    return not errors or any(event is None or event.kind in kinds for event in errors)


def error_says(other: Finding, scene: Scene, *words: str) -> bool:
    """Whether the text of the first error of the finding's job holds one of these words."""
    return any(event is not None and any(word in event.text for word in words) for event in scene.errors(other))
