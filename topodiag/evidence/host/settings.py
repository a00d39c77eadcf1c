"""Settings as given: the environment, and every nccl.conf as NCCL reads it (to the letter, without mercy).

Judges nothing: a line that NCCL will not take as it was meant is kept as it stands, for the checks.

`ncclparam -l`, and the dump of NCCL_PARAM_DUMP_ALL=true: the values of NCCL's parameters in force, and who set them.

    NCCL_IB_TIMEOUT (int64_t) [cached] timeout of InfiniBand verbs
        Current value=22 set_by=EnvPlugin default=20
        Accepted value: integer

SOURCE: NCCL 2.30 and later, src/include/param/param.h (dump), src/param/ncclparam.cc. `EnvPlugin` is what reads the
environment and nccl.conf.

Processes with a GPU open, as the collector wrote them (`json/processes.json`): binding and NCCL environment.
"""

from __future__ import annotations

from typing import Any

from topodiag.evidence import json_values as values
from topodiag.evidence.draft import NodeDraft
from topodiag.evidence.interface import MAX_GPUS, Blob, Parsed, Source
from topodiag.evidence.page import OfPage, Page
from topodiag.evidence.tree import read_tree
from topodiag.model.cpulist import parse_cpulist
from topodiag.model.node import ConfLine, Process, Setting
from topodiag.model.provenance import Fact
from topodiag.words.own_data import own_data, patterns

ENVIRONMENT = "environment"
NOT_KEPT = "the collector did not keep the value: it is not of the form that the variable takes"
MAX_VALUE = 1023
"""Bytes of a name or a value that NCCL keeps (setEnvFile in src/misc/param.cc at v2.30)."""

_LIKE = patterns("evidence/host/lines", "settings")
MOST_OF_NAME = 200
_SECRET = ("TOKEN", "KEY", "SECRET", "PASS", "CREDENTIAL", "AUTH")
_NAMES = "evidence/host/names"
_NAMESPACE = "serviceaccount/namespace"
"""The file in a pod that names its namespace (Kubernetes, "Accessing the Kubernetes API from a Pod")."""
_LOGIN = ("PATH=", "HOME=", "PWD=", "SHLVL=", "SHELL=", "USER=", "SLURM_", "KUBERNETES_")


class _SettingsPage(Page):
    """A page of settings, and the names that its conf files have set."""

    def __init__(self, blob: Blob, draft: NodeDraft) -> None:
        super().__init__(blob, draft)
        self.effective: set[tuple[str, str]] = set()

    def variable(self, number: int, assigned: str, quote: str) -> str | None:
        """Keep a variable of the environment that says something of communication or of the scheduler, never a secret;
        its value, None where it is none of these."""
        name, equals, value = assigned.partition("=")
        schedulers = tuple(own_data(_NAMES)["schedulers"])
        if not equals or not _is_name(name) or not name.startswith((*own_data(_NAMES)["ours"], *schedulers)):
            return None
        # NCCL_IB_PKEY is a partition, no secret.
        if any(word in name.upper() for word in _SECRET) and not name.startswith("NCCL_"):
            return None
        origin = self.blob.origin(number, quote)
        if name.startswith(schedulers):
            self.draft.single("scheduler").offer(name, value[:4096], origin)
        else:
            self.draft.settings.append(Setting(name, value[:4096], ENVIRONMENT, origin))
        self.mark(number)
        return value

    def conf(self, path: str, place: tuple[int, int], raw: str, quote: str) -> None:
        """Keep a line of a conf file by its number in the file and in the evidence."""
        origin = self.blob.origin(place[1], quote)
        self.draft.conf_lines.append(ConfLine(path, place[0], raw, origin))
        self.mark(place[1])
        name, value = as_nccl_reads(raw) or ("", "")
        # setenv without overwriting: of two lines of one file the first counts.
        if _is_name(name) and (path, name) not in self.effective:
            self.effective.add((path, name))
            self.draft.settings.append(Setting(name, value, path, origin))


class Settings(Source):
    """Reads the collector's settings tree, a bare nccl.conf, and bare output of `env`."""

    def recognises(self, head: str) -> bool:
        if _LIKE["tree"].search(head) is not None:
            return True
        lines = [line for line in head.split("\n") if line.strip() and not line.startswith("#")][:2000]
        if not lines or head.startswith("#!") or "#SBATCH" in head:
            return False
        names = [name for line in lines if (name := _set_by(line))]
        if sum(name.startswith("NCCL_") for name in names) * 10 >= len(lines) * 6:
            return True
        return len(lines) >= 3 and len(names) * 10 >= len(lines) * 8 and any(line.startswith(_LOGIN) for line in lines)

    def read(self, blob: Blob, draft: NodeDraft) -> Parsed[int]:
        into = _SettingsPage(blob, draft)
        head = blob.text[:65536]
        if blob.item is not None or _LIKE["tree"].search(head):
            _read_tree(into)
        else:
            _read_bare(into, _is_conf(blob.name, head))
        return into.parsed


def of_shell(text: str) -> bool:
    """Whether a shell's own variables are set here: `.deepspeed_env`, `nccl.env` and files of exports have none."""
    return _LIKE["of_shell"].search(text) is not None


def _is_name(text: str) -> bool:
    return text.isidentifier() and text.isascii() and len(text) <= MOST_OF_NAME


def _set_by(line: str) -> str:
    """The name of the variable that a line sets, "" for a line that sets none."""
    name, equals, _ = line.strip().removeprefix("export ").partition("=")
    return name.strip() if equals and _is_name(name.strip()) else ""


def as_nccl_reads(line: str) -> tuple[str, str] | None:
    """Name and value that NCCL takes from a line of nccl.conf, or None when it takes nothing.

    A `#` makes a comment only as the first byte; the first `=` splits; nothing is trimmed and no quote is removed
    (setEnvFile in src/misc/param.cc at v2.30).
    """
    if line.startswith("#") or "=" not in line:
        return None
    name, _, value = line.partition("=")
    return _cut(name), _cut(value)


def _cut(text: str) -> str:
    raw = text.encode("utf-8", errors="replace")
    return text if len(raw) <= MAX_VALUE else raw[:MAX_VALUE].decode("utf-8", errors="ignore")


def _read_tree(into: _SettingsPage) -> None:
    blob, parsed = into.blob, into.parsed
    files = read_tree(blob, parsed)
    parsed.partial = False  # whoever shows an environment shows all of it
    environ = files.get("environ")
    named = ""
    if environ is not None and environ.is_dir:
        parsed.records.append(environ.at)  # it was looked at, and is empty
    for number, text in environ.lines if environ is not None else ():
        if _LIKE["replaced"].search(text):
            parsed.leave(blob, number, text, NOT_KEPT)
        elif (value := into.variable(number, text, f"= environ\t{text}")) is not None:
            named = value.strip().removeprefix("./").strip("/") if text.startswith("NCCL_CONF_FILE=") else named
        elif "=" not in text and text.strip():
            parsed.leave(blob, number, text, "not a variable")
    for path, file in files.items():
        if path.endswith(_NAMESPACE) and file.text:
            origin = blob.origin(file.at, f"= {path}\t{file.text}")
            into.draft.single("scheduler").offer("POD_NAMESPACE", file.text[:253], origin)
        is_conf = path.rpartition("/")[2].lower().removeprefix(".") == "nccl.conf"
        if path != "environ" and (is_conf or (named and path.strip("/") == named)):
            for count, (number, text) in enumerate(file.lines, start=1):
                if _LIKE["replaced"].search(text):
                    parsed.leave(blob, number, text, NOT_KEPT)
                else:
                    # The path as users write it; the collector writes the user's home as HOME.
                    shown = "~/" + path[5:] if path.startswith("HOME/") else "/" + path
                    into.conf(shown, (count, number), text, f"= {path}\t{text}")


def _is_conf(name: str, head: str) -> bool:
    """Whether bare assignments are an nccl.conf rather than an environment.

    In doubt they are an environment, where an odd line is no fault: only a name that says conf, or blanks round the
    equals sign that no shell would take, make a file of it.
    """
    base = name.rpartition("/")[2].lower()
    if "conf" in base:
        return True
    lines = [line.strip() for line in head.split("\n")]
    if "env" in base or any(line.startswith(("#!", "#SBATCH", "export ", "setenv ")) for line in lines):
        return False
    return any(line.startswith("NCCL_") and line.partition("=")[0].endswith(" ") for line in lines if _set_by(line))


def _read_bare(into: _SettingsPage, conf: bool) -> None:
    lines = list(into.blob.lines())
    if lines and not lines[-1][1]:
        lines.pop()  # the end of the last line begins none
    for number, text in lines:
        assigned = text.strip()
        if assigned.startswith("export "):
            assigned = _unquoted(assigned[len("export ") :].lstrip())
        if conf:
            into.conf(into.blob.name, (number, number), text, text)
        elif into.variable(number, assigned, text) is None and not (
            not assigned or assigned.startswith("#") or _set_by(assigned)
        ):
            into.parsed.leave(into.blob, number, text, "not a variable")


def _unquoted(assignment: str) -> str:
    """A shell's assignment with one pair of quotes round its value removed."""
    name, equals, value = assignment.partition("=")
    if len(value) >= 2 and value[0] == value[-1] and value[0] in "\"'":
        value = value[1:-1]
    return name + equals + value


MAX_PARAMETERS = 10_000
_DEFAULT = "default"
_UNSET = "<unset>"


class NcclParams(OfPage):
    """Settings in force by NCCL's own registry: better evidence than the environment of a shell."""

    def read_page(self, page: Page) -> None:
        name = ""
        for line in page.lines():
            word, _, rest = line.text.partition(" (")
            match = _LIKE["value"].match(line.text)
            if word.isidentifier() and word.isupper() and ") [" in rest:
                name = word if word.startswith(("NCCL_", "RCCL_")) else f"NCCL_{word}"
            elif match is not None and name and len(page.parsed.records) < MAX_PARAMETERS:
                if match[2].lower() != _DEFAULT and match[1] != _UNSET:
                    origin = page.blob.origin(line.number, f"{name}: {line.text.strip()}")
                    page.draft.settings.append(Setting(name, match[1], ENVIRONMENT, origin))
                page.mark(line.number)
                name = ""


MAX_PROCESSES = 4096
MAX_VARIABLES = 256
MAX_PID = 2**32


class Processes(OfPage):
    """Processes on the GPUs. Offers a `Process` each, and its NCCL variables as settings of that process."""

    def read_page(self, page: Page) -> None:
        blob, parsed = page.blob, page.parsed
        document, why = values.load(blob)
        listed = values.member(document, "processes")
        if not isinstance(listed, list):
            parsed.leave(blob, None, "", why or "holds no list of processes")
        seen: set[int] = set()
        for place, given in values.objects(listed, MAX_PROCESSES):
            pid = values.integer(given.get("pid"), low=1, high=MAX_PID)
            if pid is None or pid in seen:
                parsed.leave(blob, None, f"processes[{place}]", "no process id, or that of another one")
                continue
            seen.add(pid)
            parsed.records.append(place)
            _offer(blob, page.draft, place, pid, given)


def _offer(blob: Blob, draft: NodeDraft, place: int, pid: int, given: dict[str, Any]) -> None:
    name, allowed = values.text(given.get("name")), values.text(given.get("cpus_allowed"))
    gpus, variables = given.get("gpus"), given.get("nccl_env")
    origin = blob.origin(text=f"processes[{place}]: pid {pid} {name or ''}")
    error = values.text(given.get("error")) or ""

    def fact(value: Any) -> Fact[Any]:
        return Fact(value, origin, "" if value is not None else error or "the collector could not read it")

    numbers = [values.integer(item, high=9999) for item in gpus[:MAX_GPUS]] if isinstance(gpus, list) else []
    few = list(variables.items())[:MAX_VARIABLES] if isinstance(variables, dict) else []
    kept = ((name, value) for name, value in few if isinstance(value, str) and not _LIKE["replaced"].search(value))
    env = {name[:100]: value[:4096] for name, value in kept}
    # The collector writes an empty environment also where it was refused.
    read = isinstance(variables, dict) and (env or not error)
    draft.processes.append(Process(
        pid, tuple(dict.fromkeys(number for number in numbers if number is not None)), fact(name),
        fact(allowed if allowed and parse_cpulist(allowed) else None), fact(env if read else None),
    ))  # fmt: skip
    for variable, value in env.items():
        draft.settings.append(Setting(variable, value, f"process {pid}", blob.origin(text=f"{variable}={value}")))
