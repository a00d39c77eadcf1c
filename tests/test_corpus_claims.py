"""The claims on whole logs and small faulty inputs, a test each: first cause, state, and what is said or not said."""

from __future__ import annotations

import pytest

from benchmarks.corpus_claims import CORPUS, cases, misses

HELD = {
    "faults/setting-names-the-missing-nics": "a setting that names the missing NICs is their one cause",
    "faults/two-versions-one-launch": "two versions in one launch are one job",
    "faults/two-versions-two-commids": "two versions in one launch are one job, with two commIds, too",
    "faults/two-versions-message-truncated": "the versions lead, and no port is accused",
    "faults/recorder-tp-rank-behind": "the rank that its tensor group waits for explains the data groups",
    "faults/ras-tp-rank-behind": "the same by one answer of RAS",
    "faults/pairs-that-name-one-node": "pair runs name the node that the slow ones share",
    "faults/pairs-one-bad-node": "pair runs name the node without a plan",
    "faults/enomem-without-limit": "a registration that fails names no limit that nobody saw",
    "faults/regmr-enomem-without-ulimit": "a registration that fails names no limit that nobody saw",
    "faults/wrong-results-and-exit-code": "wrong results stand above exit codes",
    "faults/error-802-before-assertion": "a fabric that is not up stands above the assertion that follows",
    "faults/torn-server-healthy-two-gpus": "a stream that was cut is no hang",
    "faults/torn-server-with-a-setting": "a stream that was cut is no hang",
    "faults/log-cut-in-the-middle": "a log that was cut makes nothing more certain",
    "faults/papers-beside-evidence": "documents beside evidence accuse nobody",
    "whole/001": "a server that works is not hung",
    "whole/002": "an exception above the first step ended no job",
    "whole/003": "a training whose steps go on is not hung",
    "whole/004": "the rank without a word is the one that the others wait for",
    "whole/006": "wrong results stand above exit codes",
    "whole/009": "a fabric that is not up stands above the assertion that follows",
    "whole/010": "who ran out of memory stands above those who lost it",
    "whole/012": "GPUDirect that is off is found in a long log",
    "whole/014": "documents beside a log accuse nobody",
    "faults/setting-in-the-command-line": "a setting of the command explains the run below it",
    "faults/mpirun-line-with-the-only-setting": "a setting that only the command names is priced",
    "faults/shm-off-beside-a-table": "ranks of one node over the network are the setting's effect",
    "faults/head-without-thread": "a head without a thread is one of NCCL",
    "faults/short-head-three-lines": "shared memory shows that ranks are of one node",
    "faults/peer-without-address": "a peer without an address is not named",
    "faults/ray-prefix-with-slash": "an actor's name may hold a slash",
    "faults/watchdog-in-two-lines": "a watchdog's sentence of two lines is one",
    "faults/gdr-off-explains-a-part-only": "a cause that explains a part says so",
    "faults/gdr-through-the-bridge-three-tables": "a broadcast at line rate rules ports and fabric out",
    "faults/json-agent-with-prose": "a sentence inside an agent's event is read",
    "faults/ibnetdiscover-p": "a port below its peers in ibnetdiscover -p is found",
    "faults/perftest-of-two-pairs": "the slower of two pairs is named",
    "faults/hwloc-3-with-nvlink-distances": "hwloc 3 names host, processor and NVLinks",
    "faults/inspector-of-two-jobs": "jobs of the Inspector stay apart",
    "faults/tray-in-another-clique": "cliques that differ lead",
    "faults/tray-without-fabric-uuid": "the tray without a fabric UUID is named",
    "faults/ranks-bound-to-the-other-socket": "a note on ranks reaches the page",
    "whole/008": "a setting in a shell's trace explains the table below it",
    "whole/013": "tools are found anywhere in a long bug report",
}
"""By case, the claim that it shows."""

CLAIMS = sorted(HELD.keys() & {"/".join(case) for case in cases(("whole", "faults"))})
pytestmark = pytest.mark.skipif(not CLAIMS, reason=f"the corpus is not at {CORPUS}")


@pytest.mark.parametrize("name", CLAIMS, ids=lambda name: f"{name}: {HELD[name]}")
def test_the_claim_holds(name: str) -> None:
    family, _, case = name.partition("/")
    assert misses((family, case))[2] == []
