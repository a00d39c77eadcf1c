"""The JSON that `-J FILE` writes (nccl-tests v2.17.3 and later), of any of its versions, whole or cut off.

Only settings of the job's communication are kept of the environment that it dumps: the rest may hold secrets.
SOURCE: NVIDIA/nccl-tests src/util.cu v2.17.4 to v2.19.6.

JSON that was cut off, closed behind the last whole object: nccl-tests writes as it goes, and a crash leaves it open.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from topodiag.evidence.json_values import decoded, integer, member, number, objects, text
from topodiag.evidence.nccl_tests.infer import CommandSetting
from topodiag.evidence.nccl_tests.text import MAX_DEVICES, MAX_ERRORS, MAX_ROWS, Draft, Read
from topodiag.evidence.nccl_tests.words import collective_of_binary, version_of_code
from topodiag.evidence.signatures.wrappers import Unwrapped
from topodiag.model.bench import BenchDevice, BenchRow, Timing
from topodiag.model.busid import normalise_bus_id
from topodiag.model.provenance import Origin
from topodiag.model.result import UnreadLine
from topodiag.words.own_data import own_data

_CLOSERS = ("", "}", "]}", "]}}", "}]}", "}}]}")
"""What lacks behind an object that is whole: the document, the settings, the rows, a device, a block of a row, and the
times of its iterations."""


def load(text: str) -> tuple[Any, bool, str]:
    """The document, whether it had to be closed, and why there is none (None with a reason)."""
    value, why = decoded(text)
    whole = text[: text.rfind("}") + 1] if why else ""
    tries = (decoded(whole + closers)[0] for closers in _CLOSERS if whole)
    closed = next((document for document in tries if document is not None), None)
    return (value, False, why) if closed is None else (closed, True, "")


_CONFIG: Mapping[str, str] = own_data("evidence/nccl_tests/words")["config"]
"""Keys of `config` by the names that the text output gives them."""
_SETTINGS = ("NCCL_", "RCCL_", "UCX_", "FI_", "CUDA_VISIBLE_DEVICES")
MAX_VALUE = 1e30
_KEYS = ("results", "config", "out_of_bounds")


def looks_like_json(data: bytes) -> bool:
    head = data[:4096].lstrip(b"\xef\xbb\xbf \t\r\n")
    return head.startswith(b"{") and b'"' in head[:200]


def read_json(data: bytes, source: str) -> Read | None:
    """The one run of a JSON file; None where it is JSON of something else, or none."""
    whole = data.decode("utf-8", "replace")
    document, closed, why = load(whole)
    read = Read(lines=whole.count("\n") + 1)
    if not isinstance(document, dict) or not any(key in document for key in _KEYS):
        if why and '"results"' in whole and '"bus_bw"' in whole:
            read.unread.append(UnreadLine(source, None, whole[:100], why))
            read.left = 1
            return read
        return None
    run = Draft(Unwrapped("").stream, Origin(source), from_json=True)
    read.drafts.append(run)
    _config(run, document)
    for place, entry in objects(document.get("results"), MAX_ROWS):
        row = _row(entry, source)
        if row is None:
            read.left += 1
            read.unread.append(UnreadLine(source, None, f"results[{place}]", "has no size"))
        else:
            run.rows.append(row)
            run.widths.append(4 * sum(timing.time_us is not None for timing in (row.out_of_place, row.in_place)))
            out, inside = (timing.wrong is not None for timing in (row.out_of_place, row.in_place))
            run.checked = (run.checked[0] or out, run.checked[1] or inside)
    run.bounds = integer(member(document.get("out_of_bounds"), "count"))
    average = document.get("average_bus_bandwidth", document.get("average_bus_bandwidith"))
    if isinstance(average, dict):
        value = number(average.get("bandwidth", average.get("bandwidith")), MAX_VALUE)
        run.average = -1 if value is None else value
    errors = document.get("errors")
    if isinstance(errors, list):
        run.errors += [message for error in errors[:MAX_ERRORS] if (message := text(error))]
    if closed:
        run.notes.append("the JSON file was cut off and has been closed: the run was aborted")
        run.aborted = True
    return read


def _config(run: Draft, document: dict[str, Any]) -> None:
    args = document.get("args")
    for arg in args[:200] if isinstance(args, list) else ():
        named = collective_of_binary(arg[:1000]) if isinstance(arg, str) else ""
        if named:
            run.collective, run.why_collective = named, "its command"
            break
    code = integer(document.get("nccl_version"))
    run.nccl = version_of_code(code) if code is not None else ""
    env = document.get("env")
    for line in env[:20_000] if isinstance(env, list) else ():
        name, equals, value = line.partition("=") if isinstance(line, str) else ("", "", "")
        if equals and name.startswith(_SETTINGS):
            run.env[name[:100]] = CommandSetting(value[:300])
    config = document.get("config")
    if not isinstance(config, dict):
        return
    for key, name in _CONFIG.items():
        if isinstance(config.get(key), int | float | str):
            run.parameters[name] = str(config[key])[:100]
    _devices(run, config)


def _devices(run: Draft, config: dict[str, Any]) -> None:
    """Only the first device of each process is listed; the others follow from ranks per process, without a bus id."""
    per = (integer(config.get("nthreads"), 1, 4096) or 1) * (integer(config.get("ngpus"), 1, 4096) or 1)
    for _, entry in objects(config.get("devices"), MAX_DEVICES):
        rank = integer(entry.get("rank"), 0, MAX_DEVICES)
        if rank is None:
            continue
        first = BenchDevice(
            rank=rank,
            host=text(entry.get("hostname")) or "",
            device=integer(entry.get("device"), 0, 4096) or 0,
            name=text(entry.get("device_info")) or "",
            bus_id=normalise_bus_id(text(entry.get("device_hex")) or "") or "",
            group=integer(entry.get("group"), 0, MAX_DEVICES) or 0,
            pid=integer(entry.get("pid")) or 0,
        )
        run.devices[rank] = first
        for at in range(1, min(per, MAX_DEVICES - len(run.devices))):
            other = replace(first, rank=rank + at, device=first.device + at, bus_id="")
            run.devices.setdefault(rank + at, other)


def _row(entry: dict[str, Any], source: str) -> BenchRow | None:
    size = integer(entry.get("size"), 0, 1 << 62)
    if size is None:
        return None
    root = text(entry.get("root"))
    rank = int(root) if root is not None and re.fullmatch(r"-?\d{1,9}", root) else integer(entry.get("root"))
    return BenchRow(
        size,
        integer(entry.get("count"), 0, 1 << 62) or 0,
        text(entry.get("type")) or "",
        text(entry.get("redop")) or "",
        -1 if rank is None else rank,
        _timing(entry.get("out_of_place")),
        _timing(entry.get("in_place")),
        origin=Origin(source),
    )


def _timing(block: object) -> Timing:
    """NaN is the text "nan"; negative numbers have no meaning in any of these fields."""
    if not isinstance(block, dict):
        return Timing()
    single = block.get("per_iter_timing")
    return Timing(
        number(block.get("time", block.get("cpu_time")), MAX_VALUE),
        number(block.get("alg_bw"), MAX_VALUE),
        number(block.get("bus_bw"), MAX_VALUE),
        number(block.get("nwrong"), MAX_VALUE),
        number(member(single, "p50_us"), MAX_VALUE),
        number(member(single, "p99_us"), MAX_VALUE),
    )
