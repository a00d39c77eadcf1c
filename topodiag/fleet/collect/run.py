"""Asks all nodes, listens, asks once more those that were not reached, and says of each what became of it; and the
folder of a collection: bundles under names that no other capture has, their sums, and what became of each node.

    HOST-BOOT-TIME.tar.gz   a bundle; HOST is the node as it was asked for
    SHA256SUMS              one line a bundle, as sha256sum writes and checks them
    collect.json            every node of the last call: its state, why, its file

Two deadlines: of a node and of the whole. A node that was reached and hung is not asked again: a second capture would
hang beside the first, on a node that is ill. It leaves a bundle too, which says what the collector waited for, so that
whoever judges the folder sees the node and what hung. It goes when the node answers.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import secrets
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from topodiag.evidence.intake.bundle import open_evidence
from topodiag.evidence.intake.collected import ANSWERS, SUMS, file_sum, sums_of
from topodiag.fleet.collect.boot import NO_PYTHON
from topodiag.fleet.collect.interface import Request, Transport
from topodiag.fleet.collect.lines import Receipt, part_of, private
from topodiag.lazy import regex
from topodiag.model.collect import CollectDocument, Collection, NodeAnswer, State, document, read_document
from topodiag.model.errors import InputError, TopodiagError
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


Tell = Callable[[NodeAnswer | None, int, int], None]
"""Called with a node's answer (None: nothing new), how many nodes have one, and how many there are."""
WRITE_S = 10.0
"""Between two writings of collect.json while nodes answer: what a kill leaves is at most this old."""
_REASON = regex(r"(?:ssh|srun|kubectl|Permission denied|Host key|Connection|kex_|channel|error|fatal)", re.IGNORECASE)


class _Room:
    """The ear of one collection: a receipt for each node at work, an answer for each that has ended."""

    def __init__(self, folder: Folder, request: Request, nodes: Sequence[str], tell: Tell | None) -> None:
        self.folder, self.request, self.tell = folder, request, tell
        self.nodes = dict.fromkeys(nodes)
        self.mark = request.mark.encode()
        self.answers: dict[str, NodeAnswer] = {}
        self.first: dict[str, NodeAnswer] = {}
        self.receipts: dict[str, Receipt] = {}
        self.attempt = 1
        self.trouble: OSError | None = None
        self.before: tuple[NodeAnswer, ...] = ()
        self.via = ""
        self.started, self.begun = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"), time.monotonic()
        self.written = self.begun

    def begins(self, node: str) -> None:
        self._receipt(node)

    def hears(self, node: str, line: bytes) -> bool:
        words = line.split(b" ", 3)
        ours = len(words) >= 3 and words[0] == self.mark
        name = node or (words[1].decode("utf-8", "replace") if ours else "")
        receipt = self._receipt(name)
        if receipt is None:
            return True
        try:
            more = receipt.take(words[2], words[3] if len(words) > 3 else b"") if ours else receipt.noise(line)
            if receipt.over and name not in self.answers:
                self._answer(name, self._of_receipt(name, receipt))
        except OSError as error:  # our own disk: no node is to blame
            self.trouble = error
            raise
        return more or bool(receipt.whole or receipt.failure)  # these end by themselves

    def complains(self, node: str, line: bytes) -> None:
        receipt = self._receipt(node)
        if receipt is not None:
            receipt.complain(line)

    def ends(self, node: str, code: int) -> None:
        if node not in self.answers and (receipt := self._receipt(node)) is not None:
            self._answer(node, self._ended(node, receipt, code))

    def late(self, node: str) -> None:
        if node not in self.answers and (receipt := self._receipt(node)) is not None:
            self._answer(node, self._late(node, receipt))

    def _receipt(self, node: str) -> Receipt | None:
        if node in self.nodes and node not in self.receipts:
            self.receipts[node] = Receipt(part_of(self.folder.path, len(self.receipts)))
        return self.receipts.get(node)

    def _answer_of(self, node: str, receipt: Receipt, state: State, why: str) -> NodeAnswer:
        return NodeAnswer(
            node, state, why, round(time.monotonic() - receipt.began, 3),
            host=receipt.host, boot_id=receipt.boot_id, time=receipt.time, attempts=self.attempt,
        )  # fmt: skip

    def _of_receipt(self, node: str, receipt: Receipt) -> NodeAnswer:
        if receipt.whole:
            answer = self._answer_of(node, receipt, State.ANSWERED, "")
            return self.folder.keep(receipt.place, replace(answer, sha256=receipt.sha256, size=receipt.size))
        if receipt.failure:
            return self._answer_of(node, receipt, State.REFUSED, receipt.failure)
        return self._answer_of(node, receipt, State.GARBAGE, receipt.broken)

    def _ended(self, node: str, receipt: Receipt, code: int) -> NodeAnswer:
        reason = _reason(receipt.complaints)
        if receipt.hello:
            lost = (
                f"it ended after {receipt.size} bytes of its bundle" if receipt.size else "it ended before its bundle"
            )
            return self._answer_of(node, receipt, State.GARBAGE, f"{lost}: {reason}" if reason else lost)
        if NO_PYTHON in receipt.complaints:
            return self._answer_of(node, receipt, State.REFUSED, "no python3 on the node")
        return self._answer_of(node, receipt, State.REFUSED, reason or f"exit status {code}, and no word why")

    def _late(self, node: str, receipt: Receipt) -> NodeAnswer:
        limit = self.request.node_s
        if not receipt.hello:
            why = f"the collector did not start within {in_s(limit)} of asking: its login hangs, or it is too busy"
            return self._answer_of(node, receipt, State.TIMED_OUT, why)
        waited = ", ".join(receipt.waited_for) or "the collector's end"
        answer = self._answer_of(node, receipt, State.TIMED_OUT, f"no bundle after {in_s(limit)}, waiting for {waited}")
        return self.folder.keep_hung(replace(answer, waited_for=receipt.waited_for), limit)

    def _cut(self, node: str, receipt: Receipt) -> NodeAnswer:
        """A node whose own time was not over when that of the whole was: nothing says that it hangs."""
        at = f", at work on {', '.join(receipt.waited_for)}" if receipt.waited_for else ""
        seen = f"its bundle had not come{at}" if receipt.hello else "the collector had not started"
        return self._answer_of(node, receipt, State.TIMED_OUT, f"{seen} when the time of the whole was over")

    def _answer(self, node: str, answer: NodeAnswer) -> None:
        self.answers[node] = answer
        self.receipts[node].close()
        if time.monotonic() - self.written > WRITE_S:
            self.folder.write(self.result("the collection still runs, or was killed"))
            self.written = time.monotonic()
        if self.tell is not None:
            self.tell(answer, len(self.answers), len(self.nodes))

    def end_attempt(self, in_time: bool) -> None:
        """What a stream of many nodes leaves without an end of its own: those nodes were late, or had no more time."""
        for node, receipt in self.receipts.items():
            if node in self.answers:
                continue
            if not in_time and time.monotonic() - receipt.began < self.request.node_s:
                self._answer(node, self._cut(node, receipt))
            elif receipt.hello or not in_time:
                self._answer(node, self._late(node, receipt))

    def again(self) -> list[str]:
        """The nodes that were not reached, for another attempt: what the first one said stands until they answer."""
        lost = [
            node for node, answer in self.answers.items() if answer.state is State.REFUSED and not self._heard(node)
        ]
        for node in lost:
            self.first[node] = self.answers.pop(node)
            del self.receipts[node]
        self.attempt += 1
        return lost

    def _heard(self, node: str) -> bool:
        """Whether the node itself said anything: then it was reached."""
        receipt = self.receipts[node]
        return receipt.hello or bool(receipt.failure) or NO_PYTHON in receipt.complaints

    def result(self, stopped: str) -> Collection:
        """All answers so far; nodes without one were not asked, or not to the end."""
        missing = stopped or "the whole ended before its turn"
        answers = [
            self.answers.get(node) or self.first.get(node) or NodeAnswer(node, State.NOT_ASKED, missing)
            for node in self.nodes
        ]  # fmt: skip
        seconds = round(time.monotonic() - self.begun, 3)
        return Collection(
            str(self.folder.path), self.via, self.started, seconds, tuple(answers), self.before, stopped
        )  # fmt: skip

    def close(self) -> None:
        for node, receipt in self.receipts.items():
            if node not in self.answers:
                receipt.close()


def collect(
    transport: Transport,
    nodes: Sequence[str],
    to: str,
    request: Request,
    *,
    whole_s: float,
    resume: bool = True,
    tell: Tell | None = None,
) -> Collection:
    """Collect the bundles of these nodes into a folder. With `resume`, nodes that have a good bundle there are left
    alone. The answers are in the folder whatever happens, also after KeyboardInterrupt, which is raised again. Raises
    InputError for what this host cannot do."""
    transport.check()
    folder = Folder(to, shared=transport.shares_folder)
    before = folder.valid_answers(nodes) if resume else {}
    todo = [node for node in nodes if node not in before]
    request = replace(request, mark=secrets.token_hex(8), folder=to)
    room = _Room(folder, request, todo, tell)
    room.before, room.via = tuple(before.values()), transport.name
    stopped = "interrupted"
    try:
        stopped = _ask_twice(transport, request, room, todo, room.begun + whole_s)
    except OSError as error:
        why = (room.trouble or error).strerror or str(error)
        stopped = f"the folder cannot be written: {why}"
        raise InputError(to, f"cannot be written: {why}", hint="the bundles that came before are there") from None
    except TopodiagError as error:
        stopped = error.message
        raise
    finally:
        room.close()
        with suppress(InputError):  # a full disk: what was raised first is what is said
            folder.write(room.result(stopped))
        folder.close()
    return room.result(stopped)


def _ask_twice(transport: Transport, request: Request, room: _Room, nodes: Sequence[str], end: float) -> str:
    """Why it ended early, "" where it did not."""
    todo = list(nodes)
    while todo:
        in_time = transport.ask(request, todo, room, end - time.monotonic())
        room.end_attempt(in_time)
        if not in_time:
            return "the time of the whole was over"
        if room.attempt > 1:
            break
        todo = room.again() if time.monotonic() < end else []
    return ""


def _reason(words: str) -> str:
    """The line of standard error that says most: the last one that looks like a reason, else the last one."""
    lines = [line for line in words.splitlines() if line.strip()]
    return next((line for line in reversed(lines) if _REASON.match(line)), lines[-1] if lines else "")[:300]
