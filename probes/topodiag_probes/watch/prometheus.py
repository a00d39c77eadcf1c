"""The state of a watch as Prometheus text, for node_exporter's textfile collector. Labels are parts and keys alone."""

import os
from typing import Dict, Iterable, List, Tuple

from topodiag_probes.watch.loop import Watch, is_up
from topodiag_probes.whole import whole

_FAMILIES = (
    ("topodiag_watch_up", "gauge", "Whether a port, interface, NVLink or GPU carries traffic: 1 or 0."),
    ("topodiag_watch_down_seconds", "gauge", "How long the part has been down."),
    ("topodiag_watch_downs_total", "counter", "How often the part went down since the watch began."),
    ("topodiag_watch_errors_total", "counter", "Error counters as the hardware gives them."),
    ("topodiag_watch_pcie_lanes", "gauge", "Lanes of the PCIe link of a GPU or NIC."),
    ("topodiag_watch_xids_total", "counter", "Xids since the watch began, one in five minutes for a GPU and code."),
    ("topodiag_watch_source_hangs", "gauge", "Whether a read of this source hangs: 1 or 0."),
    ("topodiag_watch_lost_lines", "gauge", "Lines that the disk refused since the last that it took."),
    ("topodiag_watch_timestamp_seconds", "gauge", "When this was written, Unix time."),
)
_NO_ERRORS = ("width", "speed")
Sample = Tuple[Dict[str, str], float]


def text(watch: Watch) -> str:
    """All families, each with its samples in the order of their labels."""
    samples = _samples(watch)
    made: List[str] = []
    for name, kind, words in _FAMILIES:
        made.append("# HELP %s %s\n# TYPE %s %s\n" % (name, words, name, kind))
        made.extend("%s%s %s\n" % (name, _labels(labels), _number(value)) for labels, value in samples.get(name, ()))
    return "".join(made)


def write(watch: Watch, path: str) -> None:
    """Replace the file in one step: the collector never reads half of one. Raises OSError."""
    with whole(path) as handle:
        handle.write(text(watch).encode("utf-8"))
        os.fchmod(handle.fileno(), 0o644)


def _samples(watch: Watch) -> Dict[str, List[Sample]]:
    found: Dict[str, List[Sample]] = {}

    def add(name: str, value: float, **labels: str) -> None:
        found.setdefault("topodiag_watch_" + name, []).append((labels, value))

    now = watch.clock.up()
    for (part, key), value in sorted(watch.values.items(), key=lambda item: item[0]):
        if key == "state":
            carries = is_up(value)
            if carries is not None:
                add("up", float(carries), part=part)
                add("down_seconds", now - watch.down_since.get(part, now), part=part)
                add("downs_total", watch.downs.get(part, 0), part=part)
        elif key == "width":
            add("pcie_lanes", float(value), part=part)
        elif not isinstance(value, str) and key not in _NO_ERRORS:
            add("errors_total", value, part=part, counter=key)
    for (part, code), count in sorted(watch.xids.items()):
        add("xids_total", count, part=part, code=str(code))
    for source in watch.sources:
        add("source_hangs", float(source.hangs), source=source.name)
    add("lost_lines", watch.journal.lost if watch.journal is not None else 0)
    add("timestamp_seconds", watch.clock.wall())
    return found


def _number(value: float) -> str:
    """Counters are whole and of any size; seconds have two decimals."""
    return "%d" % value if value == int(value) else "%.2f" % value


def _labels(labels: Dict[str, str]) -> str:
    pairs: Iterable[str] = ('%s="%s"' % (name, _escaped(value)) for name, value in labels.items())
    return "{%s}" % ",".join(pairs) if labels else ""


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
