"""Nodes on this machine that ssh reaches, healthy and ill, and `topodiag fleet collect` of a hundred of them.

Each node is an sshd in namespaces of its own (network, host name, processes, mounts), joined to this machine by a veth
pair. Needs root, openssh-server and iproute2. `python -m benchmarks.fleet_ssh --nodes 100` prints what the collection
said, how long it took and what it used, and whether each ill node was told as what it is.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

SSHD = "/usr/sbin/sshd"
NET = f"10.{128 + os.getpid() % 120}"
"""Of this process alone: two fleets may run side by side."""
READY_S = 10.0
PATH = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
_CONFIG = """\
ListenAddress 0.0.0.0
Port 22
HostKey {keys}/host
AuthorizedKeysFile {keys}/key.pub
StrictModes no
UsePAM no
PermitRootLogin yes
UseDNS no
PrintMotd no
PidFile none
SetEnv PATH={path}
{more}
"""
_ORIGINAL = 'eval "$SSH_ORIGINAL_COMMAND"'
HUNG_AFTER_S = 2.6
"""Seconds until the driver's command stops the whole collector: by then it has said once what it waits for."""


@dataclass(frozen=True, slots=True)
class Illness:
    """How a node is ill. `setup` runs in its namespaces before sshd; `command` is what each session runs instead of
    what was asked; `listens` without sshd: a port that takes connections and says nothing. `state` and `why` are what
    the collection must say of it."""

    state: str
    why: str = ""
    setup: str = ""
    command: str = ""
    sshd: bool = True
    listens: bool = False
    tools: Mapping[str, str] | None = None


_FULL = (
    "mount --bind {room} /mnt; for d in /tmp /var/tmp /dev/shm /run; do mount -t tmpfs -o size=64k none $d; done;"
    " mkdir -p {room} /run/sshd; mount --bind /mnt {room}; for d in /tmp /var/tmp /dev/shm /run;"
    " do head -c 1m /dev/zero > $d/full; done 2>/dev/null; true"
)
_HUNG = {"nvidia-smi": f"#!/bin/sh\nsleep {HUNG_AFTER_S}\nkill -STOP $PPID\nsleep 1000\n"}
KINDS: dict[str, Illness] = {
    "healthy": Illness("answered"),
    "banners": Illness(
        "answered", command=f"echo '*** authorised use only ***'; printf 'no line end'; echo >&2 quota; {_ORIGINAL}"
    ),
    "disks are full": Illness("answered", setup=_FULL),
    "no sshd": Illness("refused", "Connection refused", sshd=False),
    "sshd says nothing": Illness("refused", "timed out", sshd=False, listens=True),
    "no Python": Illness(
        "refused", "no python3",
        setup="mount -t tmpfs none /mnt; for d in usr/bin usr/local/bin; do mkdir -p /mnt/$d /mnt/w/$d;"
        " mount -t overlay -o lowerdir=/$d,upperdir=/mnt/$d,workdir=/mnt/w/$d none /$d; rm -f /$d/python3*; done",
    ),
    "a driver that hangs": Illness("timed out", "nvidia-smi", tools=_HUNG),
    "a login that hangs": Illness("timed out", "did not start", command="sleep 1000"),
    "dies in the middle": Illness("garbage", "after", command=f"{_ORIGINAL} | head -c 3000; kill -9 $PPID"),
    "a line without end": Illness("garbage", "other output", command="cat /dev/zero"),
    "shouts": Illness("garbage", "other output", command="yes " + "x" * 500),
}  # fmt: skip


@dataclass(slots=True)
class Node:
    """A node that runs. `process` leads its namespaces: when it ends, all that runs in them ends."""

    name: str
    kind: str
    process: subprocess.Popen[bytes]

    def processes(self) -> list[str]:
        """The command lines of what runs on the node, but for sshd and its sessions."""
        space = os.readlink(f"/proc/{self.process.pid}/ns/pid_for_children")
        found = []
        for entry in Path("/proc").iterdir():
            try:
                if entry.name.isdigit() and os.readlink(entry / "ns/pid") == space:
                    words = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace").strip()
                    if words and not words.startswith(("sshd", SSHD)):
                        found.append(words)
            except OSError:
                continue  # it has ended
        return found


def lacking() -> str:
    """Why no such fleet can be made here, "" where it can."""
    if os.geteuid() != 0:
        return "needs root"
    missing = [each for each in (SSHD, "ssh", "ssh-keygen", "ip", "unshare") if shutil.which(each) is None]
    if missing:
        return f"not installed: {', '.join(missing)}"
    if shutil.which("python3", path=PATH) is None:
        return f"no python3 in {PATH}"
    space = ["unshare", "--net", "--uts", "--pid", "--mount", "--fork"]
    tried = subprocess.run(
        [*space, "ip", "link", "add", "td0", "type", "veth", "peer", "name", "td1"],
        capture_output=True, check=False,
    )  # fmt: skip
    return "" if tried.returncode == 0 else f"no namespaces: {tried.stderr.decode().strip()}"


@contextmanager
def fleet(kinds: Sequence[str], room: Path) -> Iterator[tuple[list[Node], str]]:
    """Nodes gpu001 ... of these kinds, and the options of ssh that reach them. All of it is gone afterwards."""
    Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)  # OpenSSH's empty folder; a container has no tmpfiles.d
    for name in ("key", "host"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(room / name)], check=True)
    nodes: list[Node] = []
    hosts = ""
    try:
        for number, kind in enumerate(kinds, 1):
            nodes.append(_start(number, kind, room))
            hosts += f"Host gpu{number:03}\n HostName {_address(number)}\n"
        config = room / "ssh_config"
        config.write_text(
            f"{hosts}Host *\n User root\n IdentityFile {room}/key\n IdentitiesOnly yes\n StrictHostKeyChecking no\n"
            " UserKnownHostsFile /dev/null\n GlobalKnownHostsFile /dev/null\n LogLevel ERROR\n"
        )
        _wait([each for each in nodes if KINDS[each.kind].sshd])
        yield nodes, f"-F {config}"
    finally:
        for node in nodes:
            node.process.kill()
        for node in nodes:
            node.process.wait()


def _address(number: int, ours: bool = False) -> str:
    return f"{NET}.{number // 64}.{number % 64 * 4 + (1 if ours else 2)}"


def _start(number: int, kind: str, room: Path) -> Node:
    ill, name = KINDS[kind], f"gpu{number:03}"
    path = PATH
    if ill.tools:
        own = room / f"bin{number}"
        own.mkdir()
        for tool, text in ill.tools.items():
            (own / tool).write_text(text)
            (own / tool).chmod(0o755)
        path = f"{own}:{path}"
    more = f"ForceCommand {ill.command}" if ill.command else ""
    config = room / f"sshd{number}"
    config.write_text(_CONFIG.format(keys=room, path=path, more=more))
    listen = f"import socket,time; s=socket.create_server(('{_address(number)}', 22)); time.sleep(1e5)"
    main = f"exec {SSHD} -D -e -f {config}" if ill.sshd else f'exec python3 -c "{listen}"'
    if not ill.sshd and not ill.listens:
        main = "exec sleep 100000"
    # the namespaces are there when the line comes; the address is there when the answer goes back
    setup = ill.setup.replace("{room}", str(room)) or "true"
    # an own /root: a login shell must not read what somebody has set up for himself there
    script = f"hostname {name}; mount -t tmpfs none /root; ip link set lo up; {setup}; echo ready; read go; {main}"
    log = (room / f"log{number}").open("wb")
    process = subprocess.Popen(
        ["unshare", "--net", "--uts", "--pid", "--mount", "--fork", "--kill-child", "--mount-proc", "sh", "-c", script],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log,
    )  # fmt: skip
    log.close()
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdout.readline()
    link = f"td{os.getpid() % 10000}-{number}"
    peer = ["ip", "link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", str(process.pid)]
    subprocess.run(peer, check=True)
    subprocess.run(["ip", "addr", "add", f"{_address(number, True)}/30", "dev", link], check=True)
    subprocess.run(["ip", "link", "set", link, "up"], check=True)
    inside = f"ip addr add {_address(number)}/30 dev eth0 && ip link set eth0 up"
    subprocess.run(["nsenter", "-t", str(process.pid), "-n", "sh", "-c", inside], check=True)
    process.stdin.write(b"go\n")
    process.stdin.close()
    process.stdout.close()
    return Node(name, kind, process)


def _wait(nodes: Sequence[Node]) -> None:
    import socket  # noqa: PLC0415 - here alone

    end = time.monotonic() + READY_S
    for node in nodes:
        while True:
            try:
                with socket.create_connection((_address(int(node.name[3:])), 22), 1) as link:
                    if link.recv(4) == b"SSH-":
                        break
            except OSError:
                if time.monotonic() > end:
                    raise RuntimeError(f"sshd of {node.name} did not start") from None
                time.sleep(0.05)


def wrong(nodes: Sequence[Node], states: Mapping[str, tuple[str, str]]) -> list[str]:
    """The nodes of which the collection says something else than what they are: one line each."""
    told = []
    for node in nodes:
        state, why = states.get(node.name, ("nothing", ""))
        ill = KINDS[node.kind]
        if state != ill.state or ill.why not in why:
            told.append(f"{node.name} ({node.kind}): {state}: {why}")
    return told


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--nodes", type=int, default=100)
    parser.add_argument("--kind", choices=list(KINDS))
    parser.add_argument("--fanout", type=int, default=32)
    chosen = parser.parse_args()
    why = lacking()
    if why:
        print(why)
        return 2
    ill = [kind for kind in KINDS if kind != "healthy"]
    kinds = [ill[number // 3 % len(ill)] if number % 3 == 0 and number < 3 * len(ill) else "healthy"
             for number in range(chosen.nodes)]  # fmt: skip
    if chosen.kind:
        kinds = [chosen.kind] * chosen.nodes
    with tempfile.TemporaryDirectory() as folder, fleet(kinds, Path(folder)) as (nodes, options):
        import msgspec  # noqa: PLC0415 - after the nodes are there

        to = Path(folder) / "to"
        begun = time.monotonic()
        done = subprocess.run(
            [sys.executable, "-m", "topodiag", "fleet", "collect", "--nodelist", f"gpu[001-{chosen.nodes:03}]",
             "--to", str(to), "--ssh-options", options, "--deadline", "20", "--fanout", str(chosen.fanout)],
            check=False,
        )  # fmt: skip
        took = time.monotonic() - begun
        answers = msgspec.json.decode((to / "collect.json").read_bytes())["answers"]
        told = wrong(nodes, {each["node"]: (each["state"], each["why"]) for each in answers})
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        print(f"{chosen.nodes} nodes, {len(nodes) - kinds.count('healthy')} of them ill: {took:.1f} s, exit code"
              f" {done.returncode}, at most {used.ru_maxrss / 1024:.0f} MiB in a process")  # fmt: skip
        print("\n".join(told) or "every node was told as what it is")
        return 1 if told else 0


if __name__ == "__main__":
    sys.exit(main())
