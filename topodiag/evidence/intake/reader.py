"""Runs every source over the evidence of one input and fills a draft.

Two readings of the same counters among pasted texts: `before.txt` and `after.txt`, or one command twice in one text.

Counters run since boot, so one reading says little. Two texts are two moments only where their names say so: two texts
alike may be of two nodes as well. A command that stands twice in one text was run twice, alone on its line or after
others (`sleep 60; date; grep ...`), unless its prompts name two hosts.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import field, replace
from pathlib import Path

from topodiag.evidence import registry
from topodiag.evidence.assemble import assemble
from topodiag.evidence.assemble.entities import pick
from topodiag.evidence.draft import NodeDraft
from topodiag.evidence.intake.bundle import Evidence
from topodiag.evidence.interface import Blob, Item, Source
from topodiag.evidence.kinds import NODE_EVIDENCE
from topodiag.evidence.signatures.literals import Finder
from topodiag.lazy import dataclass, regex
from topodiag.model.errors import InputError
from topodiag.model.finding import Input
from topodiag.model.node import Node
from topodiag.model.provenance import Fact, NotObserved, Topic
from topodiag.model.result import UnreadLine
from topodiag.words.own_data import own_data

_SAMPLES = own_data("evidence/intake/samples")
_LIKE = {name: regex(_SAMPLES[name]) for name in ("word", "run", "host")}
_COMMANDS = Finder(tuple(text.encode() for text in _SAMPLES["holds"]))


def as_samples(blobs: Sequence[Blob]) -> list[Blob]:
    """The texts of one node, the later reading of each pair marked as such."""
    parted = [part for blob in blobs for part in _parted(blob)]
    earlier = {stem for blob in blobs if (stem := _stem(blob.name, _SAMPLES["earlier"])) is not None}
    return [replace(blob, later=True) if _stem(blob.name, _SAMPLES["later"]) in earlier else blob for blob in parted]


def _stem(name: str, words: Sequence[str]) -> str | None:
    """The file's name with its word of time taken out; None where it has none of these."""
    base = os.path.basename(name)
    for match in _LIKE["word"].finditer(base):
        if match[0].lower() in words:
            return f"{os.path.dirname(name)}/{base[: match.start()]}*{base[match.end() :]}"
    return None


def _parted(blob: Blob) -> Iterator[Blob]:
    """The text up to the second run of a command of counters, and from there on; line numbers stay."""
    if blob.item is not None or not _COMMANDS.any(blob.data):
        yield blob
        return
    text = blob.text
    runs: set[tuple[str, str]] = set()
    for match in _LIKE["run"].finditer(text):
        host = _LIKE["host"].search(match[1])
        run = (host[1] if host else "", match[2])
        if run in runs:
            head, below = text[: match.start()], text[match.start() :]
            yield replace(blob, data=head.encode(), sources=())
            yield replace(blob, data=("\n" * head.count("\n") + below).encode(), later=True, sources=())
            return
        runs.add(run)
    yield blob


FAILED = "reader failed"

RAW_KINDS = frozenset({"raw", ""})
"""Kinds that are kept in the bundle for a person, or for a later command, and read by no source here."""


@dataclass(slots=True)
class ReadNode:
    """A node with the account of how its evidence was read."""

    node: Node
    inputs: list[Input] = field(default_factory=list)
    unread: list[UnreadLine] = field(default_factory=list)


def read_node(evidence: Evidence) -> ReadNode:
    """The node of one input. Raises InputError when nothing in it was recognised."""
    draft = NodeDraft()
    inputs: list[Input] = []
    unread = list(evidence.unread)
    draft.sample_interval_s = max(evidence.intervals_s.values(), default=0.0)
    for blob in evidence.blobs if evidence.is_bundle else as_samples(evidence.blobs):
        inputs.extend(_read(blob, draft, unread))
    if not evidence.is_bundle and not draft.read:
        what = "holds nothing that topodiag knows" if len(evidence.blobs) != 1 else "unknown file type"
        raise InputError(evidence.path, what, hint=NODE_EVIDENCE)
    draft.missing.extend(_not_observed(item) for item in evidence.missing)
    draft.topics |= _told_by_absence(evidence)
    host = evidence.host or pick(draft.single("scheduler").offers.get("SLURMD_NODENAME", ()), str).get("")
    # Pasted texts name no host: their files tell one from another.
    node = assemble(draft, host or Path(evidence.path).name.split(".")[0] or "node", evidence.time)
    return ReadNode(replace(node, boot=boot_of(evidence), nameless=not host), inputs, unread)


_OF_KERNEL = frozenset({"os-state", "sys-cpu", "sys-infiniband", "sys-kfd", "sys-net", "sys-pci"})
_OF_DRIVER = frozenset({Topic.GPUS, Topic.DRIVER, Topic.NVLINKS, Topic.GPU_PAIRS})


def _told_by_absence(evidence: Evidence) -> frozenset[Topic]:
    """What is known by files that were looked for and are not there: no nccl.conf, no /sys/class/infiniband. Where the
    kernel shows none of its trees, one that is missing says nothing, and a driver that nobody could ask counts no
    GPUs."""
    shown = any(blob.item is not None and blob.item.kind in _OF_KERNEL for blob in evidence.blobs)
    kinds = {item.kind for item in evidence.missing if item.status == "absent" and not item.argv}
    topics = (registry.topics(kind) for kind in kinds if shown or kind not in _OF_KERNEL)
    return frozenset().union(*topics) - _OF_DRIVER


def boot_of(evidence: Evidence) -> Fact[str]:
    """The boot of a capture, as its manifest says."""
    return Fact(evidence.boot) if evidence.boot else Fact(why="no manifest, or one without the id of the boot")


def _read(blob: Blob, draft: NodeDraft, unread: list[UnreadLine]) -> list[Input]:
    digest = hashlib.sha256(blob.data).hexdigest()
    if blob.item is not None:
        kinds: tuple[str, ...] = (blob.item.kind,)
    else:
        whole = blob.text
        texts, text = registry.recognise_bare(whole)
        blob = replace(blob, data=text.encode()) if text is not whole else blob
        kinds = _sources_in(blob, len(text), texts) or registry.as_table(text)
    sources = [source for kind in kinds if (source := registry.source(kind)) is not None]
    if not sources:
        lines = blob.data.count(b"\n") + 1
        if blob.item is None:
            unread.append(UnreadLine(blob.name, None, "", "not of a kind that topodiag knows"))
        elif blob.item.kind not in RAW_KINDS:
            unread.append(UnreadLine(blob.name, None, "", f"no reader for kind {blob.item.kind!r}"))
        return [Input(blob.name, kinds[0] if kinds else "unknown", digest, lines)]
    pairs = [_read_with(source, blob, draft, digest) for source in sources]
    if len(pairs) == 1:
        unread.extend(pairs[0][1])
    else:
        # A transcript of several commands: what one source leaves, another reads. Only failures are worth a word.
        unread.extend(line for _, lines in pairs for line in lines if line.why.startswith(FAILED))
    return [item for item, _ in pairs]


def _sources_in(blob: Blob, size: int, texts: tuple[str, ...]) -> tuple[str, ...]:
    """The sources that read a text of so many characters, of which `texts` are those of its head, wherever in it their
    output stands: a bug report holds that of many tools."""
    if size <= registry.HEAD_CHARS:
        return texts
    if texts and blob.sources and size > 2 * registry.HEAD_CHARS:
        return registry.in_order({*texts, *blob.sources})
    from topodiag.evidence.intake.survey import sources_in  # noqa: PLC0415 - not for bundles: it knows every text

    return sources_in(blob, texts)


def _read_with(source: Source, blob: Blob, draft: NodeDraft, digest: str) -> tuple[Input, tuple[UnreadLine, ...]]:
    """Offer what a source reads in a text to the draft; the account of it."""
    draft.weight.trust, draft.weight.sample = source.trust, blob.sample
    try:
        parsed = source.read(blob, draft)
    except InputError:
        # Hostile beyond reading: too large, too deep.
        raise
    except Exception as error:  # noqa: BLE001 - the last guard: a reader's bug costs its file, never the run
        why = f"{FAILED}: {type(error).__name__}: {error}"[:200]
        return Input(blob.name, source.kind, digest), (UnreadLine(blob.name, None, "", why),)
    if parsed.records or source.quiet_is_news or (blob.item is not None and blob.item.status == "ok"):
        draft.read.add(source.kind)
        draft.topics |= source.told(parsed)
        draft.makers |= {source.maker} if source.maker is not None else set()
    lines = blob.data.count(b"\n") + 1
    account = Input(blob.name, source.kind, digest, lines, len(parsed.records), parsed.unread_count)
    return account, tuple(parsed.unread)


def read_apart(blob: Blob) -> NodeDraft | None:
    """What the source of a text makes of it where the text says nothing but what happened; None of any other text."""
    source = registry.source(blob.item.kind) if blob.item is not None else None
    if source is None or not source.separate:
        return None
    draft = NodeDraft()
    _, unread = _read_with(source, blob, draft, "")
    more = (*draft.all_entities(), *draft.pairs, *draft.settings, *draft.missing, *draft.processes)
    offered = any(single.offers for single in draft.singles.values())
    return None if unread or more or offered else draft


def _not_observed(item: Item) -> NotObserved:
    what = item.command or item.id
    why = item.why or {"timeout": "timed out", "absent": "not installed", "denied": "permission denied"}.get(
        item.status, item.status
    )
    timed_out_s = item.duration_s if item.status == "timeout" else None
    return NotObserved(what, why, item.needs_root, registry.topics(item.kind), timed_out_s)
