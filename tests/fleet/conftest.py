"""The logs of a small job, and what one process reads of them."""

import gzip
from pathlib import Path

import pytest
import zstandard

from tests.fleet.ingested import rank_log
from topodiag.fleet.ingest import Ingested, ingest


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("job")
    for rank in range(2):
        (folder / f"rank{rank}.log").write_bytes(rank_log(rank))
    (folder / "rank2.log.gz").write_bytes(gzip.compress(rank_log(2)))
    (folder / "rank3.log.zst").write_bytes(zstandard.compress(rank_log(3)))
    return folder


@pytest.fixture(scope="module")
def expected(job: Path) -> Ingested:
    return ingest([str(job)], workers=1)
