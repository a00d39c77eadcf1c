"""States of parts as tools spell them, in small letters: the one list of good and of bad ones."""

from __future__ import annotations

GOOD = frozenset({
    "active", "active_defer", "answers", "completed", "connected", "full", "healthy", "idle", "in use", "linkup",
    "link up", "normal", "ok", "online", "pass", "passed", "present", "running", "sleep", "success", "up", "yes",
})  # fmt: skip
"""States in which a part works or carries traffic when asked: `sleep` is a low-power state of a trained NVLink
(nvml.h), `active_defer` a port of InfiniBand (enum ib_port_state, include/rdma/ib_verbs.h)."""
BAD = frozenset({
    "abnormal", "bad", "critical", "degraded", "disabled", "disconnected", "down", "err", "error", "fail", "failed",
    "failure", "fatal", "fault", "faulty", "fell off", "inactive", "link down", "lost", "missing", "nok", "no carrier",
    "not ok", "notready", "not ready", "off bus", "offline", "polling", "unhealthy",
})  # fmt: skip
