"""A client of NCCL's RAS: asks a running job for its status, as `ncclras` does.

Protocol: NCCL src/ras/client_support.cc, v2.24.3 to v2.30.7: lines of ASCII over TCP, port 28028. JSON since 2.28.7;
an older server answers `SET FORMAT` with an error, and the status that follows as text, which is read as well.

Files with answers of NCCL's RAS.
"""

from __future__ import annotations

import time
from collections.abc import Iterable

from topodiag.evidence.live.ras_json import answers_in_json, answers_in_text
from topodiag.model.errors import InputError
from topodiag.model.ras import RasAnswer
from topodiag.words.units import in_s, spell_bytes

MAX_BYTES = 128 << 20
"""JSON of 16384 ranks in 8 communicators each is 60 MB."""


def read_ras(text: str, source: str) -> tuple[RasAnswer, ...]:
    """The answers in a text: status as text or JSON, events of a monitor; several one behind the other, with or without
    the lines `OK` of the protocol, and lines of other things between them."""
    return (*answers_in_text(text, source), *answers_in_json(text, source))


def in_order(answers: Iterable[RasAnswer]) -> tuple[RasAnswer, ...]:
    """The answers by time; where one has none, by their names and places, in which scripts count upwards. Two that say
    the same of the same second are one snapshot."""
    several = list(answers)
    if all(ras_answer.time is not None for ras_answer in several):
        several.sort(key=lambda ras_answer: (ras_answer.time or 0.0, ras_answer.source))
    once: dict[str, RasAnswer] = {}
    for number, ras_answer in enumerate(several):
        content = (ras_answer.time, ras_answer.communicators, ras_answer.silent, ras_answer.dead, ras_answer.events)
        once.setdefault(repr(number if ras_answer.time is None else content), ras_answer)
    return tuple(once.values())


PORT = 28028
"""NCCL_RAS_ADDR, `localhost:28028` unless it is set."""
CONNECT_S = 5.0
ANSWER_S = 60.0
"""RAS itself gives up on a leg of its own after 5 s; a job with several processes that do not answer takes longer."""
_ASK = b"CLIENT PROTOCOL 2\nSET FORMAT json\nVERBOSE STATUS\n"
_BLOCK = 1 << 16


def place_of(given: str) -> tuple[str, int]:
    """Host and port of `HOST`, `HOST:PORT`, `[ADDRESS]:PORT` or an address of IPv6. Raises InputError."""
    host, port = given, ""
    if given.startswith("["):
        host, _, rest = given[1:].partition("]")
        port = rest.removeprefix(":")
    elif given.count(":") == 1:
        host, _, port = given.partition(":")
    if not host or (port and not (port.isdecimal() and len(port) < 6 and 0 < int(port) < 65536)):
        raise InputError(given, "is no host and port", hint=f"HOST, or HOST:PORT; the port is {PORT} unless it is set")
    return host, int(port) if port else PORT


def ask(host: str, port: int, *, connect_s: float = CONNECT_S, answer_s: float = ANSWER_S) -> bytes:
    """What the server sends until it closes the connection; empty where it closes at once, as it does before the first
    communicator. Raises InputError where nothing listens, or no end comes within `answer_s` seconds."""
    import socket  # noqa: PLC0415 - where somebody asks

    name = f"{host}:{port}"
    deadline = time.monotonic() + answer_s
    received = bytearray()
    try:
        with socket.create_connection((host, port), timeout=connect_s) as connection:
            connection.sendall(_ASK)
            while time.monotonic() < deadline:
                connection.settimeout(max(0.01, deadline - time.monotonic()))
                block = connection.recv(_BLOCK)
                if not block:
                    return bytes(received)
                received += block
                if len(received) > MAX_BYTES:
                    raise InputError(name, f"sends more than {spell_bytes(MAX_BYTES)}", hint="is it NCCL?")
    except TimeoutError:
        if not received and time.monotonic() < deadline:
            raise InputError(name, f"does not accept a connection within {in_s(connect_s)}", hint=_WHERE) from None
    except ConnectionResetError:
        return bytes(received)
    except (OSError, UnicodeError) as error:
        why = getattr(error, "strerror", None) or str(error) or "cannot be reached"
        raise InputError(name, f"RAS cannot be asked: {why}", hint=_WHERE) from None
    if received:
        return bytes(received)
    raise InputError(
        name,
        f"accepts the connection and says nothing for {in_s(answer_s)}",
        hint="the process behind it may be stopped: ask another node of the job",
    )


_WHERE = (
    "RAS listens on localhost alone unless NCCL_RAS_ADDR is set: ask on a node of the job, while it runs; NCCL 2.24 or"
    " newer, NCCL_RAS_ENABLE not 0"
)
