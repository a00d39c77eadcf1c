"""States of parts as tools spell them, in small letters: the one list of good and of bad ones."""

from __future__ import annotations

GOOD = frozenset({
    "active", "active_defer", "answers", "completed", "connected", "full", "healthy", "idle", "in use", "linkup",
    "link up", "normal", "ok", "online", "pass", "passed", "present", "running", "sleep", "success", "up", "yes",
})  # fmt: skip
BAD = frozenset({
    "abnormal", "bad", "critical", "degraded", "disabled", "disconnected", "down", "err", "error", "fail", "failed",
    "failure", "fatal", "fault", "faulty", "fell off", "inactive", "link down", "lost", "missing", "nok", "no carrier",
    "not ok", "notready", "not ready", "off bus", "offline", "polling", "unhealthy",
})  # fmt: skip

__all__ = ["BAD", "GOOD"]
