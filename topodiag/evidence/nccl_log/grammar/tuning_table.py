"""NCCL's tuning table: predicted latency (us) and bandwidth (GB/s) of every collective, algorithm and protocol.

Format: src/graph/tuning.cc, since 2.31 src/tuning/tuning.cc (without the row of threads). One wide table up to 2.17
(`Latency/AlgBw |    Tree/    LL |`), blocks of three algorithms from 2.18 on. The last block repeats the protocols of
three algorithms whatever it holds: cells count, not headings.
"""

from __future__ import annotations

from topodiag.lazy import regex
from topodiag.model.nccl_enums import Algorithm, Collective, Protocol

_CELL = regex(r" *(-?\d{1,9}\.\d{1,6})/ *(-?\d{1,9}\.\d{1,6}) *\|")
_COLLECTIVE = regex(rf" *({'|'.join(Collective)}) \|")
# One CollNet up to 2.9.
_ALGORITHMS = {each.value: each.name for each in Algorithm} | {"CollNet": Algorithm.COLLNET_DIRECT.name}
_PROTOCOLS = {each.value: each.name for each in Protocol}


class TuningReader:
    """Reads row by row. Names are those of NCCL_ALGO and NCCL_PROTO in upper case, as the choices have them."""

    def __init__(self) -> None:
        self.table: dict[tuple[str, str, str], tuple[float, float]] = {}
        self._columns: list[tuple[str, str]] = []
        self._algorithms: list[str] = []

    def read(self, row: str) -> None:
        if "|" not in row:
            return
        label, *cells = (cell.strip() for cell in row[:2048].split("|"))
        if label == "Latency/AlgBw":
            self._columns = [_pair(cell) for cell in cells if cell]
        elif label == "Algorithm":
            self._algorithms, self._columns = [cell for cell in cells if cell], []
        elif label == "Protocol":
            protocols = [cell for cell in cells if cell][:3]
            self._columns = [_names(algorithm, protocol) for algorithm in self._algorithms for protocol in protocols]
        elif match := _COLLECTIVE.match(row):
            self._values(match[1], row, match.end())

    def _values(self, collective: str, row: str, at: int) -> None:
        for algorithm, protocol in self._columns:
            cell = _CELL.match(row, at)
            if cell is None:
                return  # cut or torn: what follows cannot be placed
            at = cell.end()
            if algorithm and protocol:
                # Since 2.31 what a collective cannot run is -1.0; before, and of some still, 0.0.
                self.table[collective, algorithm, protocol] = max(float(cell[1]), 0.0), max(float(cell[2]), 0.0)


def _pair(heading: str) -> tuple[str, str]:
    algorithm, _, protocol = heading.partition("/")
    return _names(algorithm.strip(), protocol.strip())


def _names(algorithm: str, protocol: str) -> tuple[str, str]:
    return _ALGORITHMS.get(algorithm, algorithm.upper()), _PROTOCOLS.get(protocol, "")
