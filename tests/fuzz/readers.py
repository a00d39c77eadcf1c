"""Every reader of topodiag as a function of bytes, by the name of what it reads.

The list is made of topodiag's own registries: sources of a node's evidence, kinds of evidence, formats of clusters and
files of launchers. A new one is fuzzed as soon as it is registered, and fails the tests until it has a seed.
"""

import atexit
import io
import json
import shutil
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import islice
from pathlib import Path
from typing import Any
from unittest.mock import patch
from zlib import crc32

from tests.evidence.nccl_log.line_by_line import extract_plain
from tests.fuzz.seeds import SEEDS
from topodiag.app.diagnose import diagnose
from topodiag.app.redact.redacting import redacted
from topodiag.checks import run as checks
from topodiag.checks.interface import Check
from topodiag.checks.registry import Subject
from topodiag.evidence import registry
from topodiag.evidence.assemble import assemble
from topodiag.evidence.cluster.files import READERS, read_cluster
from topodiag.evidence.cluster.kubernetes import read_pods
from topodiag.evidence.cluster.slurm import read_free
from topodiag.evidence.draft import NodeDraft
from topodiag.evidence.flight.flight_recorder import read_flight
from topodiag.evidence.intake.bundle import MANIFEST, from_bytes, from_files
from topodiag.evidence.intake.captures import captures
from topodiag.evidence.intake.gather import gather
from topodiag.evidence.intake.reader import FAILED, read_node
from topodiag.evidence.interface import Blob
from topodiag.evidence.kinds import Kind
from topodiag.evidence.layout.affinity import read_affinity, read_pairs_file
from topodiag.evidence.layout.job_file import read_job
from topodiag.evidence.layout.job_settings import read_arguments
from topodiag.evidence.layout.rank_files import READERS as LAYOUTS
from topodiag.evidence.layout.rank_files import read_groups, read_place_map
from topodiag.evidence.live.diagnostics import read_diagnostics, read_trace
from topodiag.evidence.live.step_times import holds_steps, read_steps
from topodiag.evidence.live.watch_log import read_watch
from topodiag.evidence.nccl_log.fast.scan import extract
from topodiag.evidence.nccl_log.rebuild.rebuild import rebuild
from topodiag.evidence.nccl_log.tables.facts import SourceFile
from topodiag.evidence.nccl_log.tables.resolve import resolve
from topodiag.evidence.nccl_log.tables.saved import load, save
from topodiag.evidence.nccl_tests.read import read_file as read_tests
from topodiag.evidence.nccl_xml.file import read_file as read_topology
from topodiag.evidence.signatures import engine
from topodiag.evidence.signatures.wrappers import unwrap
from topodiag.model.finding import Outcome
from topodiag.model.result import Result, UnreadLine
from topodiag.model.step_pace import last_starts
from topodiag.report.formats.json import document
from topodiag.report.interface import Style
from topodiag.report.page import print_drawn
from topodiag.report.registry import names, report
from topodiag.report.table import draw_result
from topodiag.sweep.judge import judge
from topodiag.sweep.planfile import read_plan
from topodiag.sweep.store import RESULTS, read_store

FIXTURES = Path(__file__).parents[2] / "fixtures"
TEXTS = Path(__file__).parent / "texts"
CRASHES = Path(__file__).parent / "crashes"
MOST_SEED = 40_000
"""Bytes of a seed: cases stay quick."""
BETWEEN = b"\x1c\n"
"""Stands between the texts of a case of several."""
MOST_PARTS = 12


@dataclass(frozen=True, slots=True)
class Reader:
    """`read` raises TopodiagError for what it refuses, and nothing else. `seeds` name texts that it reads."""

    name: str
    read: Callable[[bytes], object]
    seeds: tuple[str, ...]


class GuardedError(Exception):
    """An error of a reader or of a check that a guard of the whole run would turn into a line."""


def readers() -> Mapping[str, Reader]:
    """All of them by name: `source KIND`, `kind KIND`, `cluster FORMAT`, `layout OPTION`, `file WHAT`. The guard of the
    checks is away: what it would hide is an error here."""
    table = {f"source {kind}": _source(kind) for kind in registry.SOURCES}
    table |= {f"kind {kind.value}": OF_KINDS[kind] for kind in Kind if kind in OF_KINDS}
    table |= {f"cluster {name}": _of_blob(read) for name, (_, read) in READERS.items()}
    table |= {f"layout {name}": _of_blob(read) for name, read in LAYOUTS.items()}
    table |= {f"file {name}": read for name, read in OTHERS.items()}
    return {name: Reader(name, _unguarded(read), _seeds(name)) for name, read in sorted(table.items())}


def _seeds(name: str) -> tuple[str, ...]:
    """Those of the table, or the text that is called as what the reader reads."""
    own = name.partition(" ")[2]
    return SEEDS.get(name) or ((f"own:{own}",) if (TEXTS / own).is_file() else ())


@cache
def seeds_of(name: str) -> tuple[bytes, ...]:
    """The texts that are the seeds of a reader."""
    made = [_seed(seed) for seed in readers()[name].seeds]
    return tuple(data for data in made if data)


def _seed(place: str) -> bytes:
    """The bytes of a seed, whole lines of at most MOST_SEED."""
    if place.startswith("made:"):
        return MADE[place.removeprefix("made:")]()
    path, _, number = place.partition("#")
    if number == "all":
        return BETWEEN.join(
            _seed(f"{path}#{at}") for at in range(len(json.loads((FIXTURES / path).read_bytes())["inputs"]))
        )
    data = (TEXTS / path.removeprefix("own:") if path.startswith("own:") else FIXTURES / path).read_bytes()
    if number:
        data = json.loads(data)["inputs"][int(number)]["text"].encode()
    if len(data) > MOST_SEED:
        data = data[: data.rfind(b"\n", 0, MOST_SEED) + 1]
    return data


# --- a function of bytes for each ------------------------------------------------------------------------------


def _source(kind: str) -> Callable[[bytes], object]:
    def read(data: bytes) -> None:
        source = registry.source(kind)
        blob, draft = Blob("fuzz", data), NodeDraft()
        source.recognises(blob.text[: registry.HEAD_CHARS])
        draft.weight.trust = source.trust
        source.read(blob, draft)
        assemble(draft, "fuzz")

    return read


def _unguarded(read: Callable[[bytes], object]) -> Callable[[bytes], object]:
    def bare(data: bytes) -> None:
        with patch.object(checks, "_guarded", _judged):
            read(data)

    return bare


def _judged(check: Check[Any], judged: Any, peers: Sequence[Any]) -> Outcome:
    try:
        return check.judge(judged, peers)
    except Exception as error:
        raise GuardedError(f"{check.id}: {type(error).__name__}: {error}") from error


def _of_blob(read: Callable[[Blob], object]) -> Callable[[bytes], object]:
    return lambda data: read(Blob("fuzz", data))


def _of_path(read: Callable[[str], object], name: str = "fuzz") -> Callable[[bytes], object]:
    return lambda data: read(_written(data, name))


def _written(data: bytes, name: str = "fuzz") -> str:
    path = _folder() / name
    path.write_bytes(data)
    return str(path)


@cache
def _folder() -> Path:
    text = tempfile.mkdtemp(prefix="topodiag-fuzz-")
    atexit.register(shutil.rmtree, text, ignore_errors=True)
    return Path(text)


def _no_guarded_error(unread: tuple[UnreadLine, ...] | list[UnreadLine]) -> None:
    """Raises GuardedError where the last guard met an error of a source."""
    for line in unread:
        if line.why.startswith(FAILED):
            raise GuardedError(line.why)


def _node_text(data: bytes) -> None:
    """As `topodiag scan FILE` reads and judges it."""
    read = read_node(from_bytes("fuzz", data))
    _no_guarded_error(read.unread)
    checks.run(Subject.NODE, [read.node])


def _manifest(data: bytes) -> None:
    """A bundle with this manifest."""
    files = {**_bundle_files(), MANIFEST: data}
    _no_guarded_error(read_node(from_files("fuzz", files)).unread)


def _log(data: bytes) -> None:
    """Both extractors, which must agree, and the job that is rebuilt of what they found."""
    fast, plain = resolve(extract(data, 0, 0)), resolve(extract_plain(data, 0, 0))
    if repr(fast.tables) != repr(plain.tables) and not _same(fast.tables, plain.tables):
        raise AssertionError("the fast and the plain extractor differ")
    checks.run(Subject.JOB, rebuild(fast, (SourceFile("fuzz"),)))


def _same(left: Mapping[str, object], right: Mapping[str, object]) -> bool:
    return all(repr(left[name].rows()) == repr(right[name].rows()) for name in left)  # type: ignore[attr-defined]


def _diagnosed(data: bytes) -> None:
    """As `topodiag diagnose FILE --format json` does."""
    result: Result = diagnose([_written(data)])
    _no_guarded_error(result.unread)
    document(result)


def _joined(data: bytes) -> None:
    """As `topodiag diagnose FOLDER` does; the bytes choose the form of the output."""
    folder = _folder() / "joined"
    folder.mkdir(exist_ok=True)
    parts = data.split(BETWEEN)[:MOST_PARTS]
    for at, part in enumerate(parts):
        (folder / f"part-{at}.txt").write_bytes(part)
    for at in range(len(parts), MOST_PARTS):
        (folder / f"part-{at}.txt").unlink(missing_ok=True)
    result = diagnose([str(folder)])
    _no_guarded_error(result.unread)
    form = crc32(data) % (len(names()) + 1)
    if form == len(names()):
        redacted(result, b"fuzz")
    else:
        name = names()[form]
        write = partial(print_drawn, draw_result) if name == "table" else report(name)
        write(result, io.StringIO(), Style(width=100, verbose=1))


def _sentences(data: bytes) -> None:
    """The same sentences however the bytes are cut."""
    whole = engine.read([data], "fuzz")
    cut = engine.read([data[at : at + 777] for at in range(0, len(data), 777)], "fuzz")
    if repr(whole) != repr(cut):
        raise AssertionError("sentences differ where the bytes are cut elsewhere")
    for line in data.decode(errors="replace").split("\n")[:MOST_PARTS]:
        engine.verdicts(line)


def _wrapped(data: bytes) -> None:
    for line in data.decode(errors="replace").split("\n"):
        unwrap(line)


def _captured(data: bytes) -> None:
    """As any command meets it: what is it, and which node is it of."""
    captures(gather([_written(data)]))


def _torn_sweep(data: bytes) -> None:
    """Results of a sweep: what is no result costs that line alone."""
    folder = _folder() / "sweep"
    folder.mkdir(exist_ok=True)
    (folder / "plan-1.json").write_bytes(_seed(SEEDS["kind sweep-plan"][0]))
    (folder / RESULTS).write_bytes(data)
    stored = read_store(str(folder))
    judge(stored.plans, stored.results)


def _steps(data: bytes) -> None:
    holds_steps(data)
    text = Blob("fuzz", data).text
    last_starts(read_steps(text, "fuzz"))
    read_arguments(text, "fuzz")


OF_KINDS: dict[Kind, Callable[[bytes], object]] = {
    Kind.BUNDLE: _node_text,
    Kind.NODE_TEXT: _node_text,
    Kind.TOPOLOGY: lambda data: read_topology(data, "fuzz"),
    Kind.HWLOC: _node_text,
    Kind.NCCL_LOG: _log,
    Kind.JOB_OUTPUT: _log,
    Kind.SAVED_FACTS: _of_path(load),
    Kind.FLIGHT: _of_path(lambda path: read_flight([path]), "fuzz_rank_0"),
    Kind.NCCL_TESTS: lambda data: read_tests(data, "fuzz"),
    Kind.CLUSTER: _of_blob(read_cluster),
    Kind.KUBERNETES: _of_blob(read_cluster),
    Kind.HOSTFILE: _of_blob(LAYOUTS["hostfile"]),
    Kind.RANKFILE: _of_blob(LAYOUTS["rankfile"]),
    Kind.RANK_MAP: _of_blob(read_place_map),
    Kind.GROUPS: _of_blob(read_groups),
    Kind.SWEEP_PLAN: _of_path(read_plan),
    Kind.SWEEP: _torn_sweep,
    Kind.MANIFEST: _manifest,
    Kind.ARCHIVE: _captured,
    Kind.PARQUET: _of_path(load),
    Kind.PODS: _of_blob(read_pods),
    Kind.SIZES: _of_blob(read_job),
    Kind.RAS: _diagnosed,
    Kind.STACKS: _diagnosed,
    Kind.JSON: _diagnosed,
    Kind.INSPECTOR: _diagnosed,
    Kind.DIAGNOSTICS: lambda data: read_diagnostics(data.decode(errors="replace"), "fuzz"),
    Kind.TRACE: lambda data: read_trace(data.decode(errors="replace"), "fuzz"),
    Kind.STEPS: _steps,
    Kind.WATCH: read_watch,
}  # fmt: skip
"""How a file of this kind is read. A kind without a reader is one that is only recognised, to say what it is."""
ONLY_RECOGNISED = frozenset({
    Kind.GRAPH, Kind.BENCH_CSV, Kind.RESULT, Kind.PICKLE, Kind.PROGRAM, Kind.TEXT, Kind.BLANK, Kind.EMPTY, Kind.BINARY,
})  # fmt: skip
"""Met by `file any` and `file diagnosed`, as any bytes are."""

OTHERS: dict[str, Callable[[bytes], object]] = {
    "affinity": lambda data: read_affinity(data, "fuzz"),
    "device pairs": lambda data: read_pairs_file(data, "fuzz"),
    "free GPUs": _of_blob(read_free),
    "any": _captured,
    "diagnosed": _diagnosed,
    "joined": _joined,
    "sentences": _sentences,
    "wrapped": _wrapped,
}
"""Files that options name, which no registry of evidence holds; several texts of one case; sentences of any text."""


# --- seeds that are no text -------------------------------------------------------------------------------------


@cache
def _bundle_files() -> dict[str, bytes]:
    top = FIXTURES / "nodes" / "rtx4090-pair"
    return {str(path.relative_to(top)): path.read_bytes() for path in sorted(top.rglob("*")) if path.is_file()}


def _tar(mode: str) -> bytes:
    bytes_io = io.BytesIO()
    with tarfile.open(fileobj=bytes_io, mode=mode, format=tarfile.PAX_FORMAT) as archive:
        names = [MANIFEST, *islice((name for name in _bundle_files() if name != MANIFEST), 12)]
        for name in names:
            data = _bundle_files()[name]
            entry = tarfile.TarInfo(name)
            entry.size, entry.mtime = len(data), 1_700_000_000
            entry.pax_headers = {"comment": "fuzz"} if name == MANIFEST else {}
            archive.addfile(entry, io.BytesIO(data))
    return bytes_io.getvalue()


def _zip() -> bytes:
    bytes_io = io.BytesIO()
    with zipfile.ZipFile(bytes_io, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in islice(_bundle_files().items(), 12):
            archive.writestr(zipfile.ZipInfo(name), data)
    return bytes_io.getvalue()


def _facts() -> bytes:
    bytes_io = io.BytesIO()
    save(bytes_io, resolve(extract_plain(_seed(SEEDS["kind nccl-log"][0]), 0, 0)), (SourceFile("a.log", 10, "ab", ""),))
    return bytes_io.getvalue()


def _pickled() -> bytes:
    import pickle  # noqa: PLC0415 - only written, never loaded

    return pickle.dumps(json.loads(_seed(SEEDS["kind flight-recorder"][0])), 2)


MADE: dict[str, Callable[[], bytes]] = {
    "tar": lambda: _tar("w"),
    "tar.gz": lambda: _tar("w:gz"),
    "zip": _zip,
    "facts": _facts,
    "pickle": _pickled,
}


def crashes() -> Iterator[tuple[str, str, bytes]]:
    """Inputs that once broke something: the reader, the file's name, the bytes."""
    for path in sorted(CRASHES.glob("*/*")):
        yield path.parent.name.replace("+", " "), path.name, path.read_bytes()
