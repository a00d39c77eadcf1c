"""What the process behind `tests.program.run` imports before it forks: all of the program, and its libraries.

Modules are shared, and what NCCL's search finds; other caches start empty, as at a start of the program.
"""

from __future__ import annotations

import pkgutil
from importlib import import_module

import topodiag
from tests import searches

for _module in pkgutil.walk_packages(topodiag.__path__, "topodiag."):
    if not _module.name.endswith("__main__") and "dask" not in _module.name:
        import_module(_module.name)
searches.use()
