"""What the process behind `tests.program.run` has before it forks: all of the program, its libraries and its tables,
and the texts of the captures that tests read most.

A run of the program then reads only what is new to it. Every answer kept is one of content alone (a text, a table, a
search of NCCL's), so that a run says what it would say from an empty start; tests that look at a start itself, or at
what it takes, start an interpreter of their own (`tests.program.start`, `ARGV`).
"""

import gc
import pkgutil
from importlib import import_module
from pathlib import Path

import topodiag
from tests import kept, searches
from topodiag.app.topo import check_topology

gc.disable()
READ_MOST = ("dgx-h100-healthy", "dgx-h100-gpu3-12of18-nvlink", "hgx-a100", "no-gpu")
"""Captures that come with the program. Tests change copies of them: most texts stay."""
FILES = ("dgx-h100-healthy", "gpu-without-nvlink", "prolog")
"""Topology files of fixtures/topo: each version of NCCL builds its system of them."""
_FOLDER = Path(__file__).resolve().parents[1] / "fixtures" / "topo"

for _module in pkgutil.walk_packages(topodiag.__path__, "topodiag."):
    if not _module.name.endswith("__main__") and "dask" not in _module.name:
        import_module(_module.name)
searches.use()
kept.keep_longer()
for _name in READ_MOST * 2:  # a text is kept when it is met again
    topodiag.scan(f"fixture:{_name}").to_json()
for _name in FILES * 2:
    check_topology(str(_FOLDER / _name / "topo.xml"))
# Not looked at by a child's search for garbage, which would copy all of it.
gc.collect()
gc.freeze()
gc.enable()
