"""Prints how far the program is right about AMD's machines: topology files, RCCL's decisions, texts of ROCm's tools.

    python benchmarks/rccl_agreement.py [--files] [--truth] [--texts] [NAME ...]   default: all of shared/corpus/rccl

Files: accepted by RCCL's rules. Truth: channels, bandwidths and path types that RCCL 2.21.5 decided; rings in their
order. Texts: state, first cause, place and facts as the corpus expects them, and no word that only NVIDIA has. Every
miss is listed.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from topodiag.api import diagnose
from topodiag.evidence.nccl_xml import read_file
from topodiag.model.errors import TopodiagError
from topodiag.model.node import Node
from topodiag.nccl.predict import predict
from topodiag.nccl.prediction import Prediction

CORPUS = Path(__file__).resolve().parents[2] / "shared" / "corpus" / "rccl"
OF_NVIDIA = re.compile(
    r"nvidia|\bS?Xids?\b|NVLink|NVSwitch|\bNVML\b|\bdcgmi?\b|Fabric Manager|\bp2pBandwidthLatencyTest\b", re.IGNORECASE
)
"""Words of tools, counters and modules that only NVIDIA has."""
VERSION = "2.21"
ROUNDED = 0.051
QUOTED = ("evidence", "facts", "inputs", "unread", "timeline", "identity", "clocks")
"""Keys of an answer below which the evidence speaks."""
LOUD = ("error", "warning")


@dataclass
class Tally:
    """Per row how many are right of how many, and the misses in words."""

    right: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    asked: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    misses: list[str] = field(default_factory=list)

    def add(self, row: str, right: bool, miss: str) -> None:
        self.asked[row] += 1
        self.right[row] += right
        if not right:
            self.misses.append(f"{row}: {miss}")

    def draw(self) -> None:
        for row, count in self.asked.items():
            print(f"{row:34} {self.right[row]}/{count}")
        for miss in self.misses:
            print(f"  miss  {miss}")


def compare_files(tally: Tally, names: list[str]) -> None:
    for path in sorted((CORPUS / "models").glob("*.xml")):
        if names and path.stem not in names:
            continue
        refusals = read_file(path.read_bytes(), path.name).refusals
        tally.add("topology files accepted", not refusals, f"{path.name}: {'; '.join(r.words for r in refusals)[:160]}")


def predicted(truth: dict[str, Any]) -> Prediction:
    path = CORPUS / "models" / truth["file"]
    node = Node(path.stem, nccl_file=read_file(path.read_bytes(), path.name))
    return predict(node, nodes=truth["nodes"], version=VERSION, env={"NCCL_PXN_DISABLE": "1"}, sizes=())


def compare_truths(tally: Tally, names: list[str]) -> None:
    for path in sorted((CORPUS / "truth").glob("m*.json.gz")):
        name = path.name.partition(".")[0]
        if names and name not in names:
            continue
        truth = json.loads(gzip.decompress(path.read_bytes()))
        made = predicted(truth)
        about = f"{name} {truth['file']} x{truth['nodes']} ({truth['decided_by']})"
        if not made.accepted:
            tally.add("decisions right as a whole", False, f"{about}: {made.why}")
            continue
        by = {"rome": "known set", "search": "search", "chordal": "six links", "4p4h": "hives"}[truth["decided_by"]]
        if truth["rome_model"]:
            by = f"known set of rings {truth['rome_model']['index']} "
        tally.add("what decides", by in made.decided_by, f"{about}: {made.decided_by}, RCCL {by}")
        compare_rings(tally, made, truth, about)
        wrong = list(differences(made, truth))
        tally.add("decisions right as a whole", not wrong, f"{about}: {'; '.join(wrong)[:300]}")


def compare_rings(tally: Tally, made: Prediction, truth: dict[str, Any], about: str) -> None:
    """The order of the GPUs of the first node in each ring that was found."""
    of = {f"GPU/0-{gpu['busid']}": gpu["rank"] for gpu in truth["gpus"] if gpu["node"] == 0}
    for channel, order in enumerate(made.graphs[0].orders):
        ring = truth["rings"].get(str(channel))
        if ring is not None:
            ours = around([of[label] for label in order if label in of])
            theirs = around([rank for rank in ring if rank in of.values()])
            tally.add("rings in their order", ours == theirs, f"{about} channel {channel}: {ours}, RCCL {theirs}")


def around(ring: list[int]) -> list[int]:
    """A ring from its least rank on."""
    at = ring.index(min(ring)) if ring else 0
    return ring[at:] + ring[:at]


def differences(made: Prediction, truth: dict[str, Any]) -> Iterator[str]:
    """What differs of channels, bandwidths and path types."""
    system = truth["system"]
    if abs(made.max_bw - system["max_bw"]) > ROUNDED or abs(made.total_bw - system["total_bw"]) > ROUNDED:
        yield f"max, total {made.max_bw}, {made.total_bw}, RCCL {system['max_bw']}, {system['total_bw']}"
    for ours, theirs in zip(made.graphs, truth["graphs"], strict=False):
        mine = (ours.channels, round(ours.bw_intra, 3), round(ours.bw_inter, 3), ours.type_intra, ours.type_inter)
        rccl = (
            theirs["channels"], round(theirs["bw_intra"], 3), round(theirs["bw_inter"], 3),
            theirs["type_intra"], theirs["type_inter"],
        )  # fmt: skip
        if mine != rccl:
            yield f"graph {ours.pattern}: {mine}, RCCL {rccl}"
    counts = made.channels
    mine = None if counts is None else (counts.coll, counts.p2p, counts.p2p_per_peer)
    rccl = tuple(truth["channels"][key] for key in ("coll", "p2p", "p2p_per_peer"))
    if mine != rccl:
        yield f"channels {mine}, RCCL {rccl}"
    for start, ends in truth["paths"].items():
        for end, (hops, gbs, kind) in ends.items():
            path = made.paths.get(start, {}).get(end, (-1, -1.0, "none"))
            if path[0] != hops or abs(path[1] - gbs) > ROUNDED or path[2] != kind:
                yield f"{start} to {end}: {path}, RCCL {(hops, gbs, kind)}"
                return


@dataclass(frozen=True)
class Expected:
    """A row of EXPECTED.tsv."""

    file: str
    state: str
    first: str
    where: str
    must_not_ids: str
    must_not_words: str
    facts: str


def expected() -> list[Expected]:
    rows = (CORPUS / "texts" / "EXPECTED.tsv").read_text(encoding="utf-8").splitlines()
    header = rows[0].split("\t")
    cells = [dict(zip(header, row.split("\t"), strict=False)) for row in rows[1:]]
    return [Expected(**{name: each.get(name, "") for name in Expected.__dataclass_fields__}) for each in cells]


def compare_texts(tally: Tally, names: list[str]) -> None:
    for row in expected():
        if names and not any(row.file.startswith(name) for name in names):
            continue
        try:
            answer = json.loads(diagnose((str(CORPUS / "texts" / row.file),)).to_json())
        except TopodiagError as error:
            answer = {"verdict": {"state": "refused", "headline": str(error)}, "findings": []}
        wrong, words = list(wrongs(row, answer)), nvidia_words(answer)
        tally.add("texts as expected", not wrong, f"{row.file}: {'; '.join(wrong)[:400]}")
        tally.add("texts without NVIDIA's words", not words, f"{row.file}: {', '.join(words)[:200]}")


def wrongs(row: Expected, answer: dict[str, Any]) -> Iterator[str]:
    verdict = answer["verdict"]
    if verdict["state"] not in row.state.split("|"):
        yield f"state {verdict['state']}, expected {row.state} ({verdict['headline'][:90]})"
    causes = [cause for cause in verdict.get("causes") or () if cause.get("status") in ("established", "likely")]
    first = next((identity for cause in causes for identity in ids_of(cause)), "-")
    if not re.fullmatch(row.first or "-", first):
        yield f"first {first}, expected {row.first}"
    whole = json.dumps(answer, ensure_ascii=False)
    if row.where and not re.search(row.where, whole):
        yield f"nowhere {row.where[:60]}"
    loud = {finding["id"] for finding in answer["findings"] if finding["severity"] in LOUD}
    loud |= {identity for cause in verdict.get("causes") or () for identity in ids_of(cause)}
    if row.must_not_ids and (bad := sorted(each for each in loud if re.fullmatch(row.must_not_ids, each))):
        yield f"says {', '.join(bad)}"
    if row.must_not_words and (found := re.search(row.must_not_words, whole)):
        yield f"words {found[0]!r}"
    yield from wrong_facts(row.facts, answer.get("facts") or {})


def ids_of(cause: dict[str, Any]) -> list[str]:
    return [str(cause["check"])]


def wrong_facts(wanted: str, facts: Any) -> Iterator[str]:
    for one in filter(None, (part.strip() for part in wanted.split(";"))):
        counted = one.startswith("#")
        path, sign, value = re.split(r"([=~])", one.lstrip("#"), maxsplit=1)
        found = at(facts, path.split("."))
        said = len(found) if counted and found is not None else found
        if not (value in str(said) if sign == "~" else str(said) == value):
            yield f"fact {path} is {str(said)[:40]}, expected {value}"


def at(facts: Any, parts: list[str]) -> Any:
    for part in parts:
        if isinstance(facts, list):
            facts = facts[int(part)] if part.isdigit() and int(part) < len(facts) else None
        elif isinstance(facts, dict):
            facts = facts.get(part)
    return facts


def nvidia_words(answer: dict[str, Any]) -> list[str]:
    """NVIDIA's words in what the program says; what it quotes of the evidence is not its own."""
    return sorted({match[0] for match in OF_NVIDIA.finditer(json.dumps(own_words(answer), ensure_ascii=False))})


def own_words(answer: Any) -> Any:
    """An answer without the evidence that it quotes."""
    if isinstance(answer, dict):
        return {key: own_words(each) for key, each in answer.items() if key not in QUOTED}
    return [own_words(each) for each in answer] if isinstance(answer, list) else answer


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    for name in ("files", "truth", "texts"):
        parser.add_argument(f"--{name}", action="store_true")
    parser.add_argument("names", nargs="*", help="files or truths by name")
    asked = parser.parse_args()
    if not CORPUS.is_dir():
        sys.exit(f"the corpus is not at {CORPUS}")
    every = not (asked.files or asked.truth or asked.texts)
    tally = Tally()
    if asked.files or every:
        compare_files(tally, asked.names)
    if asked.truth or every:
        compare_truths(tally, asked.names)
    if asked.texts or every:
        compare_texts(tally, asked.names)
    tally.draw()


if __name__ == "__main__":
    main()
