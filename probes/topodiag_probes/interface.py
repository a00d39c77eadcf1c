"""What a probe is: it captures one item of evidence, as raw as it comes. The framework gives each the same treatment.

A probe runs in a thread of its own that is abandoned at its deadline, so it may block; what it had by then is kept.
"""

import os
import shutil
from typing import Callable, Dict, List, Optional, Tuple

from topodiag_probes.run import Finished, Groups, Keep, run
from topodiag_probes.tree import DENIED, Root, Tree, error_text

COMMAND_S = 10.0
"""Seconds for one command: `nvidia-smi` initialises eight GPUs without persistence mode in about that."""
ITEM_LIMIT = 8 * 1024 * 1024
"""Bytes of one item."""
SBIN = (
    "/usr/local/sbin",
    "/usr/local/bin",
    "/usr/sbin",
    "/usr/bin",
    "/sbin",
    "/bin",
    "/opt/mellanox/iproute2/sbin",
    "/usr/lib/wsl/lib",
    "/usr/local/nvidia/bin",
)
"""Searched after PATH: schedulers start prologs with no search path, and users have no sbin in theirs."""


Reduce = Callable[[str], str]
"""What is kept of a text."""


def reduced(data: bytes, reduce: Optional[Reduce]) -> bytes:
    """Bytes with what `reduce` keeps of them; other bytes than text survive."""
    if reduce is None:
        return data
    return reduce(data.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")


class Context:
    """What a probe may use: where files are, which commands there are, how long it has."""

    def __init__(
        self,
        root: Root,
        groups: Groups,
        environ: Dict[str, str],
        extra_path: Optional[str] = None,
        uid: Optional[int] = None,
    ) -> None:
        self.root = root
        self.groups = groups
        self.environ = environ
        self.uid = os.getuid() if uid is None else uid
        parts = [extra_path or "", *environ.get("PATH", "").split(os.pathsep), *SBIN]
        # An empty or relative entry would run what lies in the current folder.
        self.path = os.pathsep.join(part for part in parts if os.path.isabs(part))

    @property
    def live(self) -> bool:
        return self.root.live

    @property
    def is_root(self) -> bool:
        return self.uid == 0

    def which(self, command: str) -> Optional[str]:
        return shutil.which(command, path=self.path)

    def command_environ(self) -> Dict[str, str]:
        env = dict(self.environ)
        env.update(
            LC_ALL="C", LANG="C", PATH=self.path, NO_COLOR="1", SYSTEMD_COLORS="0", SYSTEMD_PAGER="", PAGER="cat"
        )
        return env


class Outcome:
    """How a probe went, filled while it runs."""

    def __init__(self) -> None:
        self.status = "ok"
        self.why = ""
        self.rc: Optional[int] = None
        self.stderr = ""
        self.truncated = False
        self.needs_root = False
        self.data: Optional[bytes] = None
        self.tree: Optional[Tree] = None

    def partial(self) -> Optional[bytes]:
        """What there is of a probe that did not end in time."""
        if self.data is not None:
            return self.data
        if self.tree is not None and self.tree.found:
            return self.tree.value()
        return None


class Probe:
    """One item of evidence."""

    id = ""
    kind = "raw"
    file = ""
    limit_s = COMMAND_S
    about = ""
    """One line for `--list`."""
    needs = ""
    """What has to be there, for `--list`."""
    root_adds = ""
    """What root would see more; empty when root makes no difference."""
    keeps: Tuple[str, ...] = ()
    """The fields that leave the node, in words; docs/collector.md and the manifest list them."""
    spawns = False
    """Whether it starts a process, which takes a moment to end after its deadline."""
    sampled = False
    """Whether a second reading of its counters is worth having."""

    def argv(self) -> Optional[List[str]]:
        """The command line, for probes that run one."""
        return None

    def paths(self) -> Optional[List[str]]:
        """The files, relative to the root, for probes that read some."""
        return None

    def again(self) -> Optional["Probe"]:
        """The probe that reads the counters once more, when `sampled`."""
        return self if self.sampled else None

    def more(self, ctx: Context) -> List["Probe"]:
        """Further probes that only this host can name (its interfaces, its files); asked for once, in a thread."""
        return []

    def run(self, ctx: Context, end: float, out: Outcome) -> None:
        """Capture into `out`, by the monotonic time `end`."""
        raise NotImplementedError


class CommandProbe(Probe):
    """Runs one command and keeps its standard output: the lines that `keep` wants, what `reduce` keeps of them."""

    spawns = True

    def __init__(
        self,
        name: str,
        kind: str,
        argv: List[str],
        *,
        sampled: bool = False,
        root_adds: str = "",
        keep: Optional[Keep] = None,
        reduce: Optional[Reduce] = None,
        about: str = "",
        keeps: Tuple[str, ...] = (),
    ) -> None:
        self.id = name
        self.kind = kind
        self.file = "commands/%s.txt" % name
        self.sampled = sampled
        self.root_adds = root_adds
        self.about = about or " ".join(argv)
        self.needs = argv[0]
        self._argv = argv
        self.keeps = keeps
        self._keep = keep
        self._reduce = reduce

    def argv(self) -> Optional[List[str]]:
        return list(self._argv)

    def run(self, ctx: Context, end: float, out: Outcome) -> None:
        if not ctx.live:
            out.status, out.why = "skipped", "commands run on the live host only"
            return
        place = ctx.which(self._argv[0])
        if place is None:
            out.status, out.why = "absent", "%s is not installed" % self._argv[0]
            return
        done = run(
            [place, *self._argv[1:]],
            ctx.command_environ(),
            end=end,
            limit=ITEM_LIMIT,
            groups=ctx.groups,
            keep=self._keep,
        )
        self.take(done, ctx, out)

    def take(self, done: Finished, ctx: Context, out: Outcome) -> None:
        """Bring what the command did into the outcome."""
        out.rc, out.truncated = done.rc, done.truncated
        out.stderr = done.stderr.decode("utf-8", "replace")
        out.why = done.why
        out.status = done.status
        if done.stdout or done.status == "ok":
            out.data = reduced(done.stdout, self._reduce)
        out.needs_root = bool(self.root_adds) and not ctx.is_root and self.hidden(out)

    def hidden(self, out: Outcome) -> bool:
        """Whether root would have shown more; asked when not root and `root_adds` says that it can."""
        return out.status != "absent"


class TreeProbe(Probe):
    """Reads many small files into one tree file."""

    absent = "nothing of it is there"

    def collect(self, tree: Tree, ctx: Context) -> None:
        raise NotImplementedError

    def run(self, ctx: Context, end: float, out: Outcome) -> None:
        tree = out.tree = Tree(ctx.root)
        self.collect(tree, ctx)
        out.truncated = tree.truncated
        out.needs_root = tree.denied > 0 and not ctx.is_root
        if tree.found:
            out.data = tree.value()
        elif tree.denied:
            out.status, out.why, out.data = "denied", "not readable by this user", tree.value()
        else:
            out.status, out.why = "absent", self.absent


class FileProbe(Probe):
    """Copies one file, or its end."""

    def __init__(
        self,
        name: str,
        path: str,
        *,
        kind: str = "raw",
        file: str = "",
        tail: bool = False,
        limit: int = 0,
        reduce: Optional[Reduce] = None,
        keeps: Tuple[str, ...] = (),
    ) -> None:
        self.id = name
        self.kind = kind
        self.file = file or "files/%s.txt" % name
        self.root_adds = "the file, where only root may read it"
        self.about = ("the end of /%s" if tail else "/%s") % path.lstrip("/")
        self.needs = "/" + path.lstrip("/")
        self._path = path.lstrip("/")
        self._tail = tail
        self.keeps = keeps
        self._reduce = reduce
        self._limit = limit or (64 * 1024 if tail else ITEM_LIMIT)

    def paths(self) -> Optional[List[str]]:
        return [self._path]

    def run(self, ctx: Context, end: float, out: Outcome) -> None:
        try:
            data = ctx.root.read(self._path, self._limit, self._tail)
        except OSError as error:
            if isinstance(error, (FileNotFoundError, NotADirectoryError)):
                out.status, out.why = "absent", "no such file"
                return
            out.status, out.why = "error", error_text(error)
            if error.errno in DENIED:
                out.status, out.needs_root = "denied", not ctx.is_root
            return
        out.truncated = len(data) > self._limit
        out.data = reduced(data[-self._limit :] if self._tail else data[: self._limit], self._reduce)
