"""Writes the part of docs/collector.md that lists what leaves a node, from the collector's own tables.

python tools/build_collector_docs.py            write it
python tools/build_collector_docs.py --check    exit 1 when the page is not what the tables say
"""

from __future__ import annotations

import argparse
import sys
import textwrap
from pathlib import Path

from topodiag_probes.interface import Probe
from topodiag_probes.reduced import KERNEL_PARAMETERS, PARAMETER_FAMILIES
from topodiag_probes.registry import probes
from topodiag_probes.variables import FAMILIES, FORMS

PAGE = Path(__file__).parent.parent / "docs" / "collector.md"
BEGIN = "<!-- tools/build_collector_docs.py writes from here -->"
END = "<!-- to here -->"
WIDTH = 110
_READ = {
    "nvml": "NVML",
    "processes": "`/proc/PID/{status,environ}` of processes with a GPU open",
    "settings": "environment of the collector; `/etc/nccl.conf`, `~/.nccl.conf`, the file of `NCCL_CONF_FILE`;"
    " namespace of the pod",
    "nccl-topo-file": "the file of `NCCL_TOPO_FILE`",
    "ethtool-IF": "`ethtool IF`, `ethtool -i IF`, `ethtool -S IF`",
}
"""What items read that neither run one command nor read files by fixed names."""


def read_by(probe: Probe) -> str:
    """The command or the files of an item."""
    if probe.id in _READ:
        return _READ[probe.id]
    argv, paths = probe.argv(), probe.paths()
    if argv is not None:
        return f"`{' '.join(argv)}`"
    return ", ".join(f"`/{path.lstrip('/')}`" for path in paths or ())


def fields() -> str:
    """The tables: fields by item, variables by form, kernel parameters."""
    lines = ["| item | reads | keeps |", "|---|---|---|"]
    for probe in sorted(probes(), key=lambda each: each.id):
        lines.append(f"| `{probe.id}` | {read_by(probe)} | {'; '.join(probe.keeps)} |")
    lines += ["", "### Variables", "", "A value of another form is replaced: `NCCL_ALGO=<replaced: not known words>`."]
    lines += ["", "| value | variables |", "|---|---|"]
    forms = {form.what: form for form in FORMS.values()}
    for what, form in sorted(forms.items()):
        names = sorted(name for name, of in FORMS.items() if of is form)
        lines.append(
            f"| {what}{' (identifies)' if form.identifies else ''} | {' '.join(f'`{name}`' for name in names)} |"
        )
    for start, form in FAMILIES:
        lines.append(f"| {form.what} | any other `{start}*` |")
    names = [*KERNEL_PARAMETERS, *(f"{start}*" for start in PARAMETER_FAMILIES)]
    lines += ["", "### Kernel parameters", "", textwrap.fill(" ".join(f"`{name}`" for name in names), WIDTH)]
    return "\n".join(lines)


def page() -> str:
    """The page as it is to be."""
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    return before + BEGIN + "\n\n" + fields() + "\n\n" + END + rest.partition(END)[2]


def main() -> int:
    """Write the page, or say that it is not current."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--check", action="store_true")
    text = page()
    if parser.parse_args().check:
        return int(text != PAGE.read_text(encoding="utf-8"))
    PAGE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
