"""Hands the files of the suite to its workers, as `--dist loadfile` does, in the time that this takes.

xdist looks through the names of all tests for the place of each, and counts all tests that a worker was ever given
whenever one has ended: with 16,000 tests, seconds of CPU.
"""

from xdist.scheduler import LoadFileScheduling
from xdist.workermanage import WorkerController


class ByFile(LoadFileScheduling):
    """Knows the places of tests by name, and keeps of a worker's tests those that have not ended."""

    _places: dict[str, int] | None = None

    def _assign_work_unit(self, node: WorkerController) -> None:
        if self._places is None:  # the same for all workers: `schedule` compared what they collected
            self._places = {nodeid: place for place, nodeid in enumerate(self.registered_collections[node])}
        scope, unit = self.workqueue.popitem(last=False)
        self.assigned_work.setdefault(node, {})[scope] = unit
        node.send_runtest_some([self._places[nodeid] for nodeid in unit])

    def mark_test_complete(self, node: WorkerController, item_index: int, duration: float = 0) -> None:
        nodeid = self.registered_collections[node][item_index]
        scope, units = self._split_scope(nodeid), self.assigned_work[node]
        del units[scope][nodeid]
        if not units[scope]:
            del units[scope]
        self._reschedule(node)
