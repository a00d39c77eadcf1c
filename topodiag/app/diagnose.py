"""The use case of `topodiag diagnose`: all evidence of any mix of paths, every check that applies, one result.

>>> import topodiag
>>> result = topodiag.diagnose(["fixture:dgx-h100-gpu3-12of18-nvlink"])
>>> [finding.id for finding in result.findings]
['NVL001']
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from topodiag.app.case.build import open_case
from topodiag.app.case.collecting import few_collections
from topodiag.app.case.opening import with_paths
from topodiag.app.judge.judged import judged_case
from topodiag.model.result import Result

if TYPE_CHECKING:
    from topodiag.app.case.ras import Asking
    from topodiag.model.layout import Layout


@few_collections()
def diagnose(
    paths: Sequence[str],
    *,
    places: Sequence[str] = (),
    asking: Asking | None = None,
    layout: Layout | None = None,
    trained: Mapping[str, Any] | None = None,
) -> Result:
    """Judge all evidence at these paths: nodes, jobs, and measured runs. What no check judges is left aside with the
    command that reads it. NCCL's RAS is asked at `places` (HOST, HOST:PORT) of a running job. `layout` are the parallel
    dimensions of the job, None for what its evidence says; `trained` the options of `topodiag model step` by name, None
    where nobody says what is trained, empty where nothing is. Raises InputError where nothing can be judged, and where
    nobody answers, and LayoutError where `layout` does not make the job's ranks."""
    if places:
        from topodiag.app.case.ras import asked  # noqa: PLC0415 - numpy, which only jobs need

        case = open_case(paths, lambda case: asked(case, places, asking), sizes=layout)
    else:
        case = open_case(paths, sizes=layout)
    return with_paths(judged_case(case, trained), paths)
