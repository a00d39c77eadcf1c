"""The command line of the collector: `python3 topodiag-probe.pyz > host.tar.gz`."""

import argparse
import difflib
import errno
import fnmatch
import io
import math
import os
import random
import signal
import sys
import time
from typing import Any, Callable, Dict, List, Optional

from topodiag_probes import SCHEMA, __version__
from topodiag_probes.alone import alone
from topodiag_probes.bundle import Bundle, write_tar
from topodiag_probes.capture import DEADLINE_S, capture, host_name
from topodiag_probes.keep import boot_id, keep
from topodiag_probes.redact import KEY_VARIABLE, Redactor, read_key
from topodiag_probes.registry import probes
from topodiag_probes.send import Sender, end_with_stdin, is_mark, one_word
from topodiag_probes.tree import Root
from topodiag_probes.watch import command as watching
from topodiag_probes.whole import whole

PROGRAM = "topodiag-probe"
MAX_SECONDS = 3600.0
NODE_VARIABLES = ("SLURMD_NODENAME", "NODE_NAME")
"""How Slurm and a pod of `topodiag fleet manifest` tell a program which node it is on."""
NICE = 5
"""Of a capture that is one of many: the node has other work. A third of the weight of others, not a tenth: where there
is more work than cores, a capture that gets no time would look like one that hangs."""

_WORDS = (
    ("ok", "captured"),
    ("absent", "not there"),
    ("denied", "denied"),
    ("timeout", "timed out"),
    ("error", "failed"),
    ("skipped", "skipped"),
)


class RefusedError(Exception):
    """A request that cannot be met; one line for the user."""


def _seconds(least: float) -> Callable[[str], float]:
    def seconds(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not least <= value <= MAX_SECONDS:
            raise argparse.ArgumentTypeError("%s is not a number of seconds from %g to %g" % (text, least, MAX_SECONDS))
        return value

    return seconds


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=PROGRAM,
        description="Captures what this host knows about its GPUs, NICs and links as one bundle for topodiag.",
        epilog="Writes a tar.gz on standard output. Root sees more: capabilities, logs, other users' jobs."
        " `topodiag-probe watch DIR` writes down what changes on this host, until it is stopped.",
    )
    parser.add_argument("-o", "--output", metavar="FILE", help="write to FILE instead of standard output")
    parser.add_argument(
        "--deadline",
        type=_seconds(0.5),
        default=DEADLINE_S,
        metavar="SECONDS",
        help="end after this long, with what there is then (default %(default)g)",
    )
    parser.add_argument(
        "--sample",
        type=_seconds(0.0),
        default=0.0,
        metavar="SECONDS",
        help="read counters twice, this long apart, to see which are rising",
    )
    parser.add_argument(
        "--redact",
        action="store_true",
        help="replace names, addresses, GUIDs, serial numbers, and each word that is not known to be harmless",
    )
    parser.add_argument(
        "--redact-key",
        metavar="FILE",
        help="key that makes the same tokens on every host: a file, or env:NAME for a variable (default: %s if it is"
        " set, else a new random key)" % KEY_VARIABLE,
    )
    parser.add_argument(
        "--root", default="/", metavar="FOLDER", help="read the files of a copied tree; runs no command"
    )
    parser.add_argument("--only", metavar="IDS", help="capture only these items: ids or patterns, separated by commas")
    parser.add_argument(
        "--into",
        metavar="FOLDER",
        help="write below this folder, which many nodes may share: a name of its own, whole or not at all",
    )
    parser.add_argument(
        "--jitter",
        type=_seconds(0.0),
        default=0.0,
        metavar="SECONDS",
        help="begin after a random time of at most this long, so that many nodes do not begin at once",
    )
    parser.add_argument(
        "--send",
        metavar="MARK",
        help="write the bundle as lines of text that begin with this word; for topodiag fleet collect",
    )
    parser.add_argument("--as", dest="node", metavar="NODE", help="with --send: this node's name in the lines")
    parser.add_argument(
        "--tied", action="store_true", help="with --send: end when standard input ends, since the reader is gone"
    )
    parser.add_argument(
        "--list", action="store_true", help="list the items, what each needs and what root adds, and end"
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress and no closing note")
    parser.add_argument("--version", action="version", version="%s %s (bundle %s)" % (PROGRAM, __version__, SCHEMA))
    return parser


def _say(text: str) -> None:
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except (OSError, ValueError, AttributeError):
        pass  # nobody listens


def _list() -> str:
    rows = [("ITEM", "NEEDS", "WHAT")]
    for probe in probes():
        what = probe.about + ("; root adds " + probe.root_adds if probe.root_adds else "")
        rows.append((probe.id, probe.needs, what))
    wide = [max(len(row[column]) for row in rows) for column in (0, 1)]
    return "".join("%s  %s  %s\n" % (row[0].ljust(wide[0]), row[1].ljust(wide[1]), row[2]) for row in rows)


def _chosen(text: Optional[str]) -> Optional[List[str]]:
    """The patterns of `--only`; one that can match nothing is a mistake worth a word."""
    if text is None:
        return None
    patterns = [part.strip() for part in text.split(",") if part.strip()]
    ids = [probe.id for probe in probes()]
    if not patterns:
        raise RefusedError("--only needs at least one id; --list shows them")
    for pattern in patterns:
        if any(fnmatch.fnmatchcase(each, pattern) for each in ids) or pattern.startswith("ethtool-"):
            continue
        near = difflib.get_close_matches(pattern, ids, 1)
        raise RefusedError(
            "no item is called %s%s" % (pattern, "; did you mean %s?" % near[0] if near else "; see --list")
        )
    return patterns


class Progress:
    """One line on a terminal that says what is being waited for."""

    def __init__(self) -> None:
        self.busy: List[str] = []
        self.done = 0

    def __call__(self, event: str, name: str, _seconds: float) -> None:
        if event == "start":
            self.busy.append(name)
            return
        if name in self.busy:
            self.busy.remove(name)
        self.done += 1
        _say("\r\x1b[K%d items, waiting for %s" % (self.done, self.busy[0] if self.busy else "nothing"))

    @staticmethod
    def clear() -> None:
        _say("\r\x1b[K")


def closing_note(manifest: Dict[str, Any]) -> str:
    """How many items there are, which went wrong, and what root would have added."""
    items = manifest["items"]
    counts = ["%d %s" % (sum(item["status"] == status for item in items), word) for status, word in _WORDS]
    note = "%s: %s: %s, in %.1f s\n" % (
        PROGRAM,
        manifest["host"],
        ", ".join(count for count in counts if not count.startswith("0 ")),
        manifest["wall_s"],
    )
    for status in ("timeout", "error"):
        for item in items:
            if item["status"] == status:
                note += "  %s: %s\n" % (item["id"], item["why"].split("\n")[0])
    cut = [item["id"] for item in items if item["truncated"]]
    if cut:
        note += "  cut at their limit: %s\n" % ", ".join(cut)
    adds = {probe.id: probe.root_adds for probe in probes()}
    hidden = ["%s (%s)" % (item["id"], adds.get(item["id"]) or "more") for item in items if item["needs_root"]]
    if hidden:
        note += "  root would add: %s\n" % ", ".join(hidden)
    return note


def _write(bundle: Bundle, output: Optional[str]) -> None:
    if output is None:
        packed = io.BytesIO()
        write_tar(bundle, packed)
        sys.stdout.buffer.write(packed.getvalue())
        sys.stdout.buffer.flush()
        return
    with whole(output, private=True) as handle:
        write_tar(bundle, handle)


def _check_output(output: Optional[str]) -> None:
    """Refuse before the capture what cannot be written after it."""
    if output is None:
        if sys.stdout is None:
            raise RefusedError("standard output is closed: give --output FILE")
        if sys.stdout.isatty():
            raise RefusedError("the bundle is binary: redirect standard output to a file or give --output FILE")
    elif os.path.isdir(output) or not os.path.isdir(os.path.dirname(os.path.abspath(output))):
        raise RefusedError("--output %s: not a file in a folder that exists" % output)


def _redactor(options: argparse.Namespace) -> Optional[Redactor]:
    if not options.redact:
        if options.redact_key:
            raise RefusedError("--redact-key is for --redact")
        return None
    try:
        return Redactor(read_key(options.redact_key, os.environ))
    except (OSError, ValueError) as error:
        raise RefusedError("--redact-key: %s" % error)


def _check_key(output: Optional[str], key: Optional[str]) -> None:
    """Refuse to write the bundle over the key, or to its end."""
    if key is None or key.startswith("env:") or not os.path.exists(key):
        return
    try:
        target = os.fstat(1) if output is None else os.stat(output)
    except OSError:
        return  # no such file yet, or no standard output
    if os.path.samestat(target, os.stat(key)):
        raise RefusedError(
            "%s: is the file of the key" % ("standard output" if output is None else "--output " + output)
        )


def _check_many(options: argparse.Namespace) -> None:
    """Refuse options of a capture of many nodes that contradict each other."""
    if sum(each is not None for each in (options.output, options.into, options.send)) > 1:
        raise RefusedError("--output, --into and --send are three places for one bundle: give one of them")
    if options.send is not None and not is_mark(options.send):
        raise RefusedError("--send %s: a mark is 8 to 64 letters and digits" % one_word(options.send))
    if options.send is None and (options.node or options.tied):
        raise RefusedError("--as and --tied are for --send")
    if options.into is not None and not os.path.isdir(options.into):
        raise RefusedError("--into %s: no such folder" % options.into)


def _one_of_many(options: argparse.Namespace) -> int:
    """A capture for a collection of many nodes: polite, one at a time, and sent or kept under a name of its own."""
    only, redactor = _chosen(options.only), _redactor(options)
    sender = None
    if options.send is not None:
        named = (os.environ.get(name) for name in NODE_VARIABLES)
        sender = Sender(sys.stdout.buffer, options.send, options.node or next(filter(None, named), "-"))
        if options.tied:
            end_with_stdin()
        root = Root(options.root)
        sender.hello(host_name(root), boot_id(root))
    if options.jitter:
        time.sleep(random.uniform(0.0, options.jitter))  # noqa: S311 - no secret, a moment
    try:
        os.nice(NICE)
    except OSError:
        pass
    held = alone(options.deadline)
    if held is None:
        why = "another capture has been running on this node for more than %g s" % options.deadline
        if sender is None:
            raise RefusedError(why)
        sender.fail(why)
        return 0
    if sender is not None:
        sender.watch()
    bundle = capture(
        root=options.root,
        deadline_s=options.deadline,
        sample_s=options.sample,
        redactor=redactor,
        only=only,
        on_progress=sender.progress if sender is not None else None,
    )
    packed = io.BytesIO()
    write_tar(bundle, packed)
    if sender is not None:
        sender.bundle(packed.getvalue(), bundle.manifest)
        return 0
    path = keep(packed.getvalue(), bundle.manifest, options.into)
    if not options.quiet:
        _say(closing_note(bundle.manifest) + "  kept as %s\n" % path)
    return 0


def _run(options: argparse.Namespace) -> int:
    _check_many(options)
    if options.send is not None or options.into is not None:
        if not os.path.isdir(options.root):
            raise RefusedError("--root %s: no such folder" % options.root)
        return _one_of_many(options)
    only = _chosen(options.only)
    output = None if options.output == "-" else options.output
    if not os.path.isdir(options.root):
        raise RefusedError("--root %s: no such folder" % options.root)
    _check_output(output)
    _check_key(output, options.redact_key)
    redactor = _redactor(options)
    progress = Progress() if not options.quiet and sys.stderr is not None and sys.stderr.isatty() else None
    try:
        bundle = capture(
            root=options.root,
            deadline_s=options.deadline,
            sample_s=options.sample,
            redactor=redactor,
            only=only,
            on_progress=progress,
        )
    finally:
        if progress is not None:
            progress.clear()
    _write(bundle, output)
    if not options.quiet:
        _say(closing_note(bundle.manifest))
    return 0


def _terminated(number: int, _frame: Any) -> None:
    raise SystemExit(128 + number)


def main(arguments: Optional[List[str]] = None) -> int:
    """Run the command line; returns the exit status."""
    signal.signal(signal.SIGTERM, _terminated)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # nohup wants it ignored
        signal.signal(signal.SIGHUP, _terminated)
    given = sys.argv[1:] if arguments is None else arguments
    if given[:1] == ["watch"]:
        return watching.main(given[1:], _say)
    options = _parser().parse_args(given)
    try:
        if options.list:
            sys.stdout.write(_list())
            sys.stdout.flush()
            return 0
        return _run(options)
    except RefusedError as refusal:
        _say("%s: %s\n" % (PROGRAM, refusal))
        return 2
    except KeyboardInterrupt:
        return 130
    except OSError as error:
        if error.errno == errno.EPIPE:
            # Whoever read has had enough. What is still in the buffer must not raise again at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            return 0
        _say("%s: %s\n" % (PROGRAM, error))
        return 2


if __name__ == "__main__":
    sys.exit(main())
