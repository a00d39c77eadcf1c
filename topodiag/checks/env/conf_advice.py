"""What an nccl.conf should say on a node or for a job: decided from findings, from the lines that are there, from NICs.

The names and values are decided here; `emit/nccl_conf.py` only writes them down. What a conf file cannot do (take back
what the environment sets: setenv without overwrite, src/misc/param.cc, v2.28) is told as such.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence

from topodiag.checks.env.conf_file import MAX_VALUE_BYTES, misread
from topodiag.checks.env.node import ENVIRONMENT, given, internal_ib_nics, uses_internal_ib
from topodiag.checks.shared.devices import NOT_FOR_JOBS, is_up
from topodiag.model.devices import NetDev, Nic, NicRole
from topodiag.model.finding import Finding, Severity
from topodiag.model.nccl_conf import ConfAdvice, ConfEntry
from topodiag.model.node import ConfLine, Node
from topodiag.words.units import few, fold_runs

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
