"""The folder of a collection: bundles under names that no other capture has, their sums, and what became of each node.

    HOST-BOOT-TIME.tar.gz   a bundle; HOST is the node as it was asked for
    SHA256SUMS              one line a bundle, as sha256sum writes and checks them
    collect.json            every node of the last call: its state, why, its file

A node that was reached and hung leaves a bundle too: it says which items the collector waited for, so that whoever
judges the folder sees the node and what hung. It goes when the node answers.
"""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from topodiag.evidence.intake.bundle import open_evidence
from topodiag.evidence.intake.collected import ANSWERS, SUMS, file_sum, sums_of
from topodiag.fleet.collect.lines import private
from topodiag.model.collect import CollectDocument, Collection, NodeAnswer, State, document, read_document
from topodiag.model.errors import InputError
from topodiag.words.units import in_s
from topodiag.writing import replacing
from topodiag_probes import SCHEMA
from topodiag_probes.bundle import Bundle, write_tar
from topodiag_probes.keep import file_name

HUNG = "topodiag fleet collect"
"""The tool in the manifest of a bundle that stands for a node that hung."""
_MOST = 64 << 20


class Folder:
    """The place of a collection's files, for its owner alone where it is new and not `shared` with the nodes. Raises
    InputError where it cannot be made or written."""

    def __init__(self, path: str, *, shared: bool = False) -> None:
        self.path = Path(path)
        try:
            self.path.mkdir(mode=0o777 if shared else 0o700, parents=True, exist_ok=True)
            for left in self.path.glob(".*.part"):
                if not _alive(left.name):
                    left.unlink(missing_ok=True)
            if (self.path / ANSWERS).exists() and self._document() is None:
                raise InputError(
                    str(self.path / ANSWERS),
                    "is not of topodiag, and would be written over",
                    hint="name another folder",
                )
            self._sums = open(self.path / SUMS, "a", encoding="utf-8", opener=private)  # noqa: SIM115 - close() ends it
        except OSError as error:
            raise InputError(
                path, f"cannot be written: {error.strerror or error}", hint="name another folder"
            ) from None

    def close(self) -> None:
        self._sums.close()

    def valid_answers(self, nodes: Sequence[str]) -> dict[str, NodeAnswer]:
        """By node the latest answer that is still good: its file is there, and has the sum that it came with."""
        held = self._document()
        if held is None:
            return {}
        sums = sums_of(str(self.path))
        wanted = set(nodes)
        return {
            answer.node: answer
            for answer in (*held.before, *held.answers)
            if answer.state is State.ANSWERED and answer.node in wanted
            if sums.get(answer.file) == answer.sha256 == self._sum(answer.file)
        }

    def keep(self, part: Path, answer: NodeAnswer) -> NodeAnswer:
        """Give a bundle that came whole its name, and write down its sum. What is no bundle is not kept. Raises
        OSError."""
        try:
            held = open_evidence(str(part))
            why = "" if held.is_bundle and (held.blobs or held.missing) else "is no bundle, or one that holds nothing"
        except InputError as error:  # what `compare` would refuse
            why = error.message.removeprefix(str(part)).lstrip(":/ ")
        if why:
            part.unlink(missing_ok=True)
            return replace(answer, state=State.GARBAGE, why=f"what came whole {why}", sha256="", size=0)
        hung = tuple(dict.fromkeys(item.id for item in held.missing if item.status == "timeout"))
        name = file_name(answer.node, answer.boot_id, answer.time)
        self._sums.write(f"{answer.sha256}  {name}\n")
        self._sums.flush()
        part.replace(self.path / name)
        self._drop_stubs(answer.node)
        return replace(answer, file=name, hung_probes=hung)

    def keep_hung(self, answer: NodeAnswer, limit_s: float) -> NodeAnswer:
        """A bundle that holds nothing but what the collector waited for on a node that hung. Raises OSError."""
        when = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        why = f"still running when the collector's time on the node was over ({in_s(limit_s)})"
        item = {"kind": "raw", "keeps": [], "file": "", "status": "timeout", "why": why, "sample": 0}
        manifest = {
            "schema": SCHEMA,
            "tool": HUNG,
            "host": answer.host or answer.node,
            "boot_id": answer.boot_id,
            "time": when,
            "samples": [{"number": 0, "time": when, "interval_s": 0.0}],
            "items": [{"id": name, **item, "duration_s": limit_s} for name in answer.waited_for or ("collector",)],
        }
        packed = io.BytesIO()
        write_tar(Bundle(manifest, {}), packed)
        self._drop_stubs(answer.node)
        name = file_name(answer.node, answer.boot_id, when).removesuffix(".tar.gz") + ".hung.tar.gz"
        packed_bytes = packed.getvalue()
        with replacing(str(self.path / name), private=True) as stream:
            stream.write(packed_bytes)
        return replace(
            answer, file=name, time=when, sha256=hashlib.sha256(packed_bytes).hexdigest(), size=len(packed_bytes)
        )

    def write(self, collection: Collection) -> None:
        """Write the answers of this call beside the bundles. Raises InputError."""
        with replacing(str(self.path / ANSWERS), private=True) as stream:
            stream.write(document(collection))

    def _drop_stubs(self, node: str) -> None:
        """What stood for this node while it hung. A name that only begins alike has another number of parts."""
        start = file_name(node, "", "").partition("-noboot-")[0] + "-"
        for path in self.path.glob("*.hung.tar.gz"):
            if path.name.startswith(start) and path.name.count("-") == start.count("-") + 1:
                path.unlink(missing_ok=True)

    def _document(self) -> CollectDocument | None:
        """The answers that were written down here, those of earlier calls first. What cannot be read is none."""
        try:
            with (self.path / ANSWERS).open("rb") as stream:
                return read_document(stream.read(_MOST))
        except OSError:
            return None

    def _sum(self, name: str) -> str:
        try:
            return file_sum(str(self.path / Path(name).name))
        except OSError:
            return ""


def _alive(part: str) -> bool:
    """Whether the program that writes a part is still there: another collection into the same folder."""
    digits = part.lstrip(".").partition("-")[0]
    return digits.isascii() and digits.isdigit() and len(digits) < 10 and os.path.exists(f"/proc/{digits}")
