"""Settings of NCCL and what surrounds it: variables of variables.py, configuration files, the job's identity."""

import os
from typing import List, Optional

from topodiag_probes import reduced
from topodiag_probes.interface import Context, Probe, Reduce, TreeProbe
from topodiag_probes.tree import Root, Tree
from topodiag_probes.variables import NAME, kept

CONFIG = ("etc/nccl.conf",)
NAMESPACE = "var/run/secrets/kubernetes.io/serviceaccount/namespace"


def devices(root: Root) -> List[str]:
    """Names of this node's network interfaces and RDMA devices: a variable may name them, however they are called."""
    return root.names("sys/class/net") + root.names("sys/class/infiniband")


class Settings(TreeProbe):
    """The collector's own environment and the files that NCCL reads."""

    id = "settings"
    kind = "settings"
    file = "trees/settings.tree"
    about = "NCCL, CUDA, UCX, MPI, Slurm and Kubernetes variables, nccl.conf files"
    needs = "nothing"
    keeps = (
        "NAME=VALUE of the variables below, where the value is of the form that the variable takes",
        "the lines of nccl.conf files, without comments; values as above",
        "the Kubernetes namespace",
    )

    def paths(self) -> Optional[List[str]]:
        return ["environ", *CONFIG, "HOME/.nccl.conf", NAMESPACE]

    def collect(self, tree: Tree, ctx: Context) -> None:
        environ = ctx.environ if ctx.live else {}
        tree.mark("environ")  # that nothing is set is a fact as well
        own = devices(ctx.root)
        for name, value in kept(environ, own).items():
            tree.line("environ", "%s=%s" % (name, value))

        def keep(text: str) -> str:
            return reduced.conf(text, own)

        for path in CONFIG:
            tree.text(path, keep=keep)
        home = environ.get("HOME", "")
        if os.path.isabs(home):
            self._own(tree, ctx, home.strip("/") + "/.nccl.conf", keep)
        named = environ.get("NCCL_CONF_FILE", "")
        if os.path.isabs(named):
            tree.text(named.lstrip("/"), keep=keep)
        tree.text(NAMESPACE, keep=lambda text: text.strip() if NAME.test(text.strip()) else "")

    @staticmethod
    def _own(tree: Tree, ctx: Context, path: str, keep: Reduce) -> None:
        """The user's own file, under a name that does not tell who that is."""
        try:
            data = ctx.root.read(path)
        except OSError:
            return
        text = data.decode("utf-8", "surrogateescape")
        tree.put("HOME/.nccl.conf", keep(text[:-1] if text.endswith("\n") else text))


def probes() -> List[Probe]:
    return [Settings()]
