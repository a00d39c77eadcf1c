"""nccl.conf: lines that NCCL does not read as meant, and what the file should say on a node or for a job, decided from
findings, from the lines that are there, from NICs.

The names and values are decided here; `emit/nccl_conf.py` only writes them down. What a conf file cannot do (take back
what the environment sets: setenv without overwrite, src/misc/param.cc, v2.28) is told as such.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence

from topodiag.checks.env.node import ENVIRONMENT, given, internal_ib_nics, uses_internal_ib
from topodiag.checks.interface import NodeCheck
from topodiag.checks.shared.devices import NOT_FOR_JOBS, is_up
from topodiag.lazy import regex
from topodiag.model.devices import NetDev, Nic, NicRole
from topodiag.model.finding import Finding, Outcome, Severity
from topodiag.model.nccl_conf import ConfAdvice, ConfEntry
from topodiag.model.node import ConfLine, Node
from topodiag.model.provenance import Topic
from topodiag.words.units import few, fold_runs

MAX_VALUE_BYTES = 1023
"""NCCL copies at most this much of a value (setEnvFile, src/misc/param.cc, v2.30)."""

TOO_LONG = f"the value is longer than {MAX_VALUE_BYTES} bytes and is cut"

_COMMENTED = regex(r"\s#")
_LISTS = frozenset({"NCCL_IB_HCA", "NCCL_SOCKET_IFNAME", "NCCL_OOB_NET_IFNAME", "NCCL_ALGO", "NCCL_PROTO"})
"""Lists that NCCL splits at commas without trimming (parseStringList, src/misc/utils.cc)."""

_PATH_NAMES = ("NCCL_DEBUG_FILE", "NCCL_TOPO_FILE", "NCCL_TOPO_DUMP_FILE", "NCCL_GRAPH_FILE", "NCCL_CONF_FILE")


class ConfLineNotRead(NodeCheck, id="ENV002"):
    """ENV002: an nccl.conf line that NCCL does not read as meant

    What it finds
        Blanks round `=` and in lists, quotes, `export`, comments behind a value, indented lines, lines without `=`,
        values that are too long, `~` in paths: each is taken literally by NCCL, without a warning. A second line for
        a name that the same file has set already: the first one counts.

    Why it matters
        The intended setting is not in force, and NCCL prints nothing: `NCCL_IB_HCA = mlx5` sets a variable named
        `NCCL_IB_HCA `, which NCCL does not read. The job chooses its NICs as if the line were missing.

    Evidence it reads
        /etc/nccl.conf, ~/.nccl.conf and the file that NCCL_CONF_FILE names, line by line. In a job's log: values
        that NCCL prints with a blank or a quote in them, and those that it refuses (`Invalid value`).

    When it stays silent
        Comments (`#` as the very first character) and empty lines. There is no such file: not applicable. The files
        could not be looked at: unknown.

    How to confirm
        export NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=ENV      then run: NCCL prints each variable in force
        The variable of this line is missing there, or has an odd value.

    How to fix
        Write `NAME=value`: no blanks, no quotes, no `export`, comments on lines of their own that begin with `#`.

    References
        NCCL src/misc/param.cc (setEnvFile).
    """

    def observe(self, judged: Node, peers: Sequence[Node]) -> Outcome:
        if not judged.conf_lines:
            if Topic.SETTINGS in judged.topics:
                return self.not_applicable(judged, "no nccl.conf on this node")
            return self.unknown(judged, "nccl.conf files are not in the evidence")
        first: dict[tuple[str, str], str] = {}
        wrong = [(line, misread(line.text) or _repeated(line, first)) for line in judged.conf_lines]
        return self.any_of(judged, (self._report(judged, line, *pair) for line, pair in wrong if pair is not None))

    def _report(self, node: Node, line: ConfLine, what: str, meant: str) -> Finding:
        """What NCCL gets wrong about a line, and how to write it ("" where it is to go)."""
        return self.finding(
            self.where(node),
            "misread line",
            f"{line.path} line {line.number}: {what}",
            observed=line.text.strip()[:120] or "(blanks)",
            expected=meant or "NAME=value",
            fix=(f"Write it as: {meant}" if meant else "Remove the line, or write it as NAME=value",),
            evidence=[line],
        )


def misread(text: str) -> tuple[str, str] | None:
    """What NCCL gets wrong about a line and how to write it, or None when it reads it as meant."""
    if not text.strip() or text.startswith("#"):
        return None
    bare = text.strip()
    if bare.startswith("#"):
        return "an indented comment is read as a setting", "" if "=" not in bare else bare
    if "=" not in text:
        return "no = in it, so NCCL skips the line", ""
    name, _, value = bare.removeprefix("export ").strip().partition("=")
    wrong = _misread_name(text, name) or _misread_value(text, name, value)
    if wrong is None:
        return None
    return wrong, "" if wrong == TOO_LONG else _clean(name, value)


def _misread_name(text: str, name: str) -> str | None:
    if text.strip().startswith("export "):
        return "`export` becomes part of the name"
    if name != name.rstrip() or text[0].isspace():
        return "a blank becomes part of the name"
    if len(name.split()) > 1:
        return "the words before the name become part of it"
    return None


def _misread_value(text: str, name: str, value: str) -> str | None:
    quotes = ("'", '"')
    rules = (
        (value != value.lstrip(), "a blank becomes part of the value"),
        (_COMMENTED.search(value) is not None, "a comment behind the value becomes part of it"),
        (value[:1] in quotes or value[-1:] in quotes, "quotes become part of the value"),
        (text != text.rstrip(), "a blank at the end becomes part of the value"),
        (name in _LISTS and any(map(str.isspace, value)), "a blank in the list becomes part of a name in it"),
        (len(value.encode("utf-8", errors="replace")) > MAX_VALUE_BYTES, TOO_LONG),
        (value.startswith("~") and name in _PATH_NAMES, "`~` is not expanded"),
    )
    return next((what for holds, what in rules if holds), None)


def _repeated(line: ConfLine, first: dict[tuple[str, str], str]) -> tuple[str, str] | None:
    """A line for a name that has another value already: setenv does not overwrite."""
    name, equals, value = line.text.partition("=")
    if not equals or line.text.startswith("#"):
        return None
    kept = first.setdefault((line.path, name), value)
    return None if kept == value else (f"{name[:60]} is set further up already, and the first line counts", "")


def _clean(name: str, value: str) -> str:
    """The line as it was meant: no blanks, quotes or comments round the value, no words before the name."""
    name = name.rsplit(maxsplit=1)[-1] if name.split() else ""
    value = value[:MAX_VALUE_BYTES]
    while (bare := _bare(name, value)) != value:
        value = bare
    home = value.startswith("~") and name in _PATH_NAMES
    return f"{name}=/home/USER{value[1:]}" if home else f"{name}={value}"


def _bare(name: str, value: str) -> str:
    value = _COMMENTED.split(f" {value}" if value.startswith("#") else value, maxsplit=1)[0].strip().strip("'\"")
    return "".join(value.split()) if name in _LISTS else value


HCA, IFNAME = "NCCL_IB_HCA", "NCCL_SOCKET_IFNAME"
MOST_HCAS = 32
"""MAX_IB_DEVS, entries of the list that NCCL reads (src/transport/net_ib.cc, v2.28)."""


def advise(
    nodes: Sequence[Node], findings: Sequence[Finding], subject: str = "", printed: Mapping[str, str] | None = None
) -> ConfAdvice:
    """The nccl.conf for these nodes, or with none of them for the job that the findings are of; `printed` are the
    settings that a job's log shows, which may come from the environment or from a conf file."""
    shown = printed or {}
    wanted, removed = _by_findings(findings)
    name = subject or ", ".join(node.host for node in nodes[:4])
    elsewhere: list[str] = []
    kept = _kept_lines(nodes, wanted, removed)
    placed = {entry.name for entry in kept}
    new = _new_entries(nodes, removed, elsewhere)
    replaced = {entry.name for entry in new}
    entries = [entry for entry in kept if entry.name not in replaced or entry.value is None]
    entries += _taken_out(nodes, shown, removed, {entry.name for entry in entries if entry.value is None}, elsewhere)
    entries += [ConfEntry(setting, value, (why,)) for setting, (value, why) in wanted.items() if setting not in placed]
    conf_entries = (*entries, *new)
    for entry in conf_entries:
        if entry.value is not None and not entry.kept and _wins(nodes, shown, entry.name):
            why = "is set in the environment already, which wins over any file: change it there"
            elsewhere.append(f"{entry.name} {why}")
    return ConfAdvice(name, conf_entries, tuple(dict.fromkeys(elsewhere)))


def _kept_lines(nodes: Sequence[Node], wanted: dict[str, tuple[str, str]], removed: dict[str, str]) -> list[ConfEntry]:
    """What becomes of the lines that are there."""
    entries: list[ConfEntry] = []
    for line in _lines(nodes):
        entries.append(_line(line, wanted, removed, {entry.name for entry in entries}))
    return entries


def _taken_out(
    nodes: Sequence[Node], shown: Mapping[str, str], removed: dict[str, str], done: set[str], elsewhere: list[str]
) -> list[ConfEntry]:
    """Entries for settings that only a log shows; what no file can take back is said in `elsewhere`."""
    entries = []
    for setting, why in removed.items():
        if setting in done:
            continue
        scopes = _scopes(nodes, setting)
        if not scopes and setting in shown:
            entries.append(ConfEntry(setting, None, (why,), f"{setting}={shown[setting]}"))
            elsewhere.append(f"unset {setting} in the environment too, if it is given there: it wins over any file")
        else:
            where = f" ({', '.join(scopes[:3])})" if scopes else ""
            elsewhere.append(f"unset {setting} where it is given{where}: no conf file takes it back. {why}")
    return entries


def _by_findings(findings: Sequence[Finding]) -> tuple[dict[str, tuple[str, str]], dict[str, str]]:
    """What findings set, (value, why) by name, and what they take out, why by name. Information is left to the user."""
    wanted: dict[str, tuple[str, str]] = {}
    removed: dict[str, str] = {}
    for finding in findings:
        if finding.severity < Severity.WARNING:
            continue
        for name, value in finding.settings:
            why = f"{finding.id}: {finding.message}"
            if value is None:
                removed[name] = f"{removed[name]}; {why}" if name in removed and why not in removed[name] else why
            else:
                wanted.setdefault(name, (value, why))
    for name in set(wanted) & set(removed):
        del wanted[name]
    return wanted, removed


# --- lines that are there -----------------------------------------------------------------------------------


def _lines(nodes: Sequence[Node]) -> Iterator[ConfLine]:
    """Lines of the nodes' conf files, each text once. What only some of the nodes have is of those alone."""
    seen: set[tuple[str, str]] = set()
    for node in nodes:
        for line in node.conf_lines:
            if line.text.strip() and not line.text.startswith("#") and (line.path, line.text) not in seen:
                seen.add((line.path, line.text))
                yield line


def _line(line: ConfLine, wanted: dict[str, tuple[str, str]], removed: dict[str, str], placed: set[str]) -> ConfEntry:
    name, _, value = line.text.partition("=")
    where = f"{line.path} line {line.number}"
    wrong = misread(line.text)
    if wrong is not None:
        what, meant = wrong
        name, equals, value = meant.partition("=")
        if not equals or not value or name in placed:
            return ConfEntry(name or line.text.strip(), None, (f"ENV002: {where}: {what}",), line.text)
        if name not in removed:
            return ConfEntry(name, value, (f"ENV002: {where}: {what}",), line.text)
    if name in placed:
        return ConfEntry(name, None, (f"ENV002: {where}: {name} is set further up already",), line.text)
    if name in removed:
        return ConfEntry(name, None, (removed[name],), line.text)
    if name in wanted:
        value, why = wanted[name]
        return ConfEntry(name, value, (why,), line.text)
    return ConfEntry(name, value, (f"as in {where}",), line.text, kept=True)


def _wins(nodes: Sequence[Node], printed: Collection[str], name: str) -> bool:
    """Whether something that a conf file cannot overwrite sets a name. A log does not say what did (`set by
    environment` are conf files, too), so a name that was printed counts."""
    return name in printed or any(scope.startswith((ENVIRONMENT, "process ")) for scope in _scopes(nodes, name))


def _scopes(nodes: Sequence[Node], name: str) -> list[str]:
    texts = [scope for node in nodes for setting in given(node) if setting.name == name for scope in setting.scopes]
    return list(dict.fromkeys(texts))


# --- NICs and interfaces ------------------------------------------------------------------------------------


def _new_entries(nodes: Sequence[Node], removed: dict[str, str], elsewhere: list[str]) -> list[ConfEntry]:
    """NCCL_IB_HCA and NCCL_SOCKET_IFNAME where NCCL's own choice would be another one, the same on all nodes."""
    entries = []
    for name, choose in ((HCA, _hcas), (IFNAME, _bootstrap)):
        chosen = [(None if name in removed else _entry(node, name)) or choose(node) for node in nodes]
        needed = next((entry for entry in chosen if entry is not None and entry.why), None)
        if needed is None:
            continue
        values = dict.fromkeys(entry.value if entry is not None else "none" for entry in chosen)
        if len(values) > 1:
            words = " and ".join(map(str, list(values)[:2]))
            elsewhere.append(f"{name} is not the same on all nodes ({words}): make a file for each kind of node")
            continue
        entries.append(needed)
    return entries


def _entry(node: Node, name: str) -> ConfEntry | None:
    """What the node has already, where it has it: a choice with which nothing is wrong stands."""
    value = next((setting.value for setting in given(node) if setting.name == name and setting.value.strip()), None)
    return ConfEntry(name, value, ()) if value is not None else None


def _hcas(node: Node) -> ConfEntry | None:
    """The ports of the compute NICs, with a reason where NCCL would take others too. A role that is unknown decides
    nothing."""
    compute = [nic for nic in internal_ib_nics(node) if nic.rdma_name]
    others = [nic for nic in node.nics if nic.rdma_name and nic.role is not NicRole.COMPUTE and is_up(nic)]
    value = _hca_list(compute) if compute and uses_internal_ib(node) else None
    if value is None or any(nic.role is NicRole.UNKNOWN for nic in others):
        return None
    if not others:
        return ConfEntry(HCA, value, ())
    role = "/".join(sorted({nic.role.value for nic in others}))
    names = fold_runs([nic.rdma_name or "" for nic in others])
    why = f"{names} {'is' if len(others) == 1 else 'are'} {role}, and NCCL takes every RDMA port that is up"
    return ConfEntry(HCA, value, (why, "'=' means exact match; without it mlx5_1 also matches mlx5_10 to mlx5_19"))


def _hca_list(nics: Sequence[Nic]) -> str | None:
    """The ports of NICs as NCCL_IB_HCA names them whole, or None where its list has no room for them."""
    ports = [f"{nic.rdma_name}:{port}" for nic in nics for port in _ports(nic)]
    value = "=" + ",".join(ports)
    if len(ports) > MOST_HCAS or len(value) > MAX_VALUE_BYTES or any(not _is_plain(port) for port in ports):
        return None
    return value


def _ports(nic: Nic) -> list[int]:
    """Its active ports; of a NIC without one the first, which is meant to be up."""
    active = [port.number for port in nic.ports if (port.state.value or "").strip().upper() == "ACTIVE"]
    return active or [port.number for port in nic.ports[:1]] or [1]


def _bootstrap(node: Node) -> ConfEntry | None:
    """The interface of the default route, with a reason where NCCL would take the first of several that are not meant
    for it: rails of compute NICs, bridges, overlays. IPoIB is left alone: NCCL prefers it (src/misc/socket.cc, v2.28).
    """
    up = [netdev for netdev in node.netdevs if netdev.operstate.value == "up" and netdev.master.value is None]
    if any(net_dev.name.startswith("ib") for net_dev in up):
        return None
    default = [net_dev for net_dev in up if net_dev.default_route.value]
    if len(default) != 1 or default[0].kind.get("ether") == "loopback":
        return None
    name, astray = default[0].name, _astray(node, [net_dev for net_dev in up if net_dev not in default])
    if not _is_plain(name) or NOT_FOR_JOBS.match(name):
        return None
    others = few(astray, 4)
    why = f"{name} has the default route; without this NCCL takes the first interface, perhaps one of {others}"
    return ConfEntry(IFNAME, f"={name}", (why,) if astray else ())


def _astray(node: Node, netdevs: Sequence[NetDev]) -> list[str]:
    """Interfaces that are not for the bootstrap and that NCCL does not pass over by itself."""
    rails = {name for nic in internal_ib_nics(node) for name in (*nic.netdevs, *(p.netdev.value for p in nic.ports))}
    names = [netdev.name for netdev in netdevs if netdev.name in rails or NOT_FOR_JOBS.match(netdev.name)]
    return [name for name in names if not name.startswith(("docker", "lo"))]


def _is_plain(name: str) -> bool:
    """Whether a name can stand in NCCL's list: it knows no escape, and keeps 63 characters of each."""
    return re.fullmatch(r"[A-Za-z0-9_.\-]{1,63}(?::[0-9]{1,3})?", name) is not None
