"""Records what the program says of every fixture and known text, and compares two records line by line.

    python benchmarks/agreement.py record FILE [--only NAME,..]   writes FILE, gzipped JSON
    python benchmarks/agreement.py compare BEFORE AFTER           one line a change; exit 1 where anything changed

A record holds, for each case, the state, the headline, and each finding with its id, severity, message and evidence.
The cases are those of `fixtures/` and, where it stands beside the checkout, of the corpus. `--only` takes beginnings of
names, such as `field/`, `corpus/faults`.
"""

from __future__ import annotations

import argparse
import gzip
import json
import multiprocessing
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from topodiag.api import diagnose
from topodiag.model.errors import TopodiagError

ROOT = Path(__file__).resolve().parents[1]
FIXTURES = ROOT / "fixtures"
CORPUS = ROOT.parent / "shared" / "corpus"
FOLDERS = ("live", "incidents", "jobs", "nodes", "tables", "topo")
CORPUS_FILES = ("logs", "nccl_tests", "topo_m", "links", "pairwise")
CORPUS_FOLDERS = ("incidents", "jobs", "ras")
TRUTHS = ("truth.json", "truths.toml", "README.md", "INDEX.tsv", "misses.toml")

Said = dict[str, Any]


def cases() -> Iterator[tuple[str, tuple[str, ...]]]:
    """Each case by name, with its path or paths."""
    for path in sorted((FIXTURES / "field").glob("*.json")):
        yield f"field/{path.stem}", (str(path),)
    for folder in FOLDERS:
        yield from _members(folder, FIXTURES / folder)
    for folder in CORPUS_FILES:
        yield from _members(f"corpus/{folder}", CORPUS / folder)
    for folder in CORPUS_FOLDERS:
        yield from _members(f"corpus/{folder}", CORPUS / folder)
    for path in sorted((CORPUS / "cases").glob("*.json")):
        yield f"corpus/cases/{path.stem}", (str(path),)
    for path in sorted((CORPUS / "faults").glob("*/in")):
        yield f"corpus/faults/{path.parent.name}", (str(path),)
    for path in sorted((CORPUS / "whole").iterdir() if (CORPUS / "whole").is_dir() else ()):
        if path.is_dir():
            yield f"corpus/whole/{path.name}", (str(path),)


def _members(name: str, folder: Path) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The members of a folder; of a folder that is a case of its own what stands in it, without the truth."""
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        if path.name in TRUTHS or path.name.endswith((".truth.json.gz", ".truth.json")):
            continue
        if path.is_dir() and any((path / truth).exists() for truth in TRUTHS):
            yield f"{name}/{path.name}", tuple(str(each) for each in sorted(path.iterdir()) if each.name not in TRUTHS)
        else:
            yield f"{name}/{path.name}", (str(path),)


def said(name: str, paths: tuple[str, ...]) -> Said:
    """What `topodiag diagnose` says of a case, or how it refuses it."""
    if name.startswith(("field/", "corpus/cases/")):
        return _said_of_texts(json.loads(Path(paths[0]).read_text()))
    return _said(paths)


def _said_of_texts(held: dict[str, Any]) -> Said:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place, "case")  # a name that is the same in each run: a node without one is called by its folder
        for index, given in enumerate(held.get("inputs") or ()):
            file = folder / (given.get("name") or f"{index}.txt")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(str(given["text"]))
        answer = _said((str(folder),))
    return json.loads(json.dumps(answer).replace(place, ""))  # type: ignore[no-any-return]


def _said(paths: tuple[str, ...]) -> Said:
    try:
        result = json.loads(diagnose(paths).to_json())
    except TopodiagError as error:
        return {"refused": _without_roots(str(error).splitlines()[0])}
    except Exception as error:  # noqa: BLE001 - an internal error is an answer to compare, too
        return {"refused": f"internal error: {type(error).__name__}: {error}"}
    verdict = result.get("verdict") or {}
    return {
        "state": verdict.get("state", ""),
        "headline": verdict.get("headline", ""),
        "findings": [
            {
                "id": finding["id"],
                "severity": finding["severity"],
                "message": finding["message"],
                "evidence": [_place(place) for place in finding["evidence"]],
            }
            for finding in result["findings"]
        ],
    }


def _without_roots(text: str) -> str:
    """Words of an error without the folders of this machine, so that records of two checkouts can be compared."""
    return text.replace(str(CORPUS), "CORPUS").replace(str(FIXTURES), "FIXTURES")


def _place(evidence: object) -> str:
    if not isinstance(evidence, dict):
        return str(evidence)
    file, line = evidence.get("file") or evidence.get("source") or "", evidence.get("line") or ""
    return f"{Path(str(file)).name}:{line}"


def _one(case: tuple[str, tuple[str, ...]]) -> tuple[str, Said]:
    return case[0], said(*case)


def record(file: Path, only: tuple[str, ...]) -> int:
    chosen = [case for case in cases() if case[0].startswith(only)]
    with multiprocessing.Pool(maxtasksperchild=200) as pool:
        answers = dict(pool.imap_unordered(_one, chosen, chunksize=8))
    with gzip.open(file, "wt", encoding="utf-8") as stream:
        json.dump(dict(sorted(answers.items())), stream, indent=0)
    print(f"{len(answers)} cases in {file}")
    return 0


def differences(before: Said, after: Said, brief: bool) -> Iterator[str]:
    """What changed in one case, a line each; `brief`: no words, only refusals, states, ids and severities."""
    for key in ("refused", "state") if brief else ("refused", "state", "headline"):
        if before.get(key) != after.get(key):
            yield f"{key}: {before.get(key)!r} -> {after.get(key)!r}"
    ids = [[f"{f['id']} {f['severity']}" for f in answer.get("findings", ())] for answer in (before, after)]
    if ids[0] != ids[1]:
        yield f"findings: {', '.join(ids[0]) or '-'} -> {', '.join(ids[1]) or '-'}"
        return
    for old, new in () if brief else zip(before.get("findings", ()), after.get("findings", ()), strict=True):
        for key in ("message", "evidence"):
            if old[key] != new[key]:
                yield f"{old['id']} {key}: {old[key]!r} -> {new[key]!r}"


def compare(before: Path, after: Path, brief: bool) -> int:
    old, new = (json.loads(gzip.decompress(path.read_bytes())) for path in (before, after))
    changed = 0
    for name in sorted(old.keys() & new.keys()):
        lines = list(differences(old[name], new[name], brief))
        changed += bool(lines)
        for line in lines:
            print(f"{name}  {line}")
    if missing := len(old.keys() ^ new.keys()):
        print(f"{missing} cases are in one record only")
    print(f"{changed} of {len(old.keys() & new.keys())} cases changed")
    return int(changed > 0)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    recording = commands.add_parser("record")
    recording.add_argument("file", type=Path)
    recording.add_argument("--only", default="", help="beginnings of names, with commas between")
    comparing = commands.add_parser("compare")
    comparing.add_argument("before", type=Path)
    comparing.add_argument("after", type=Path)
    comparing.add_argument("--brief", action="store_true", help="only refusals, states, ids and severities")
    options = parser.parse_args()
    if options.command == "record":
        return record(options.file, tuple(options.only.split(",")))
    return compare(options.before, options.after, options.brief)


if __name__ == "__main__":
    sys.exit(main())
