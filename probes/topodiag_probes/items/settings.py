"""Settings of NCCL and what surrounds it: environment, configuration files, the job's identity. Never secrets."""

import os
import re
from typing import Dict, List, Optional

from topodiag_probes.interface import Context, Probe, TreeProbe
from topodiag_probes.tree import Tree

_NAMES = re.compile(
    r"(?:NCCL|RCCL|CUDA|NVIDIA|NVSHMEM|UCX|UCC|SHARP|PSM2|EFA|AWS_BATCH|RAY|SKYPILOT|FI|OFI|OMPI|PRTE|PMIX?|PALS|I_MPI|MPICH|MV2|SLURM|SLURMD|KUBERNETES|TORCH"
    r"|TORCHELASTIC|GLOO|IBV|RDMAV|MLX5|HSA|HIP|ROCR|OMP|KMP|GOMP|PBS|LSB|FLUX)_[A-Z0-9_]*\Z"
    r"|PMI[0-9A-Z_]*\Z"
    r"|(?:LOCAL_|GROUP_|NODE_|ROLE_)?RANK\Z|(?:LOCAL_|GROUP_|ROLE_)?WORLD_SIZE\Z|MASTER_(?:ADDR|PORT)\Z"
    r"|LD_LIBRARY_PATH\Z|LD_PRELOAD\Z|HOSTNAME\Z|NODE_NAME\Z|POD_NAME(?:SPACE)?\Z|JOB_COMPLETION_INDEX\Z"
)
_SECRET = re.compile(r"TOKEN|SECRET|PASS|CRED|AUTH|COOKIE|JWT|KEY|PRECONDITION_TRANSPORTS", re.IGNORECASE)
_NO_SECRET = re.compile(r"_PKEY\Z|_BYPASS", re.IGNORECASE)
"""An InfiniBand partition key is a number that every port shows, and a bypass passes nothing secret."""
_LOGIN = re.compile(r"(://)[^/@\s]*@")
VALUE_LIMIT = 4096

CONFIG = ("etc/nccl.conf",)
NAMESPACE = "var/run/secrets/kubernetes.io/serviceaccount/namespace"


def wanted(name: str) -> bool:
    """Whether a variable bears on communication and is no secret by its name."""
    if not _NAMES.match(name):
        return False
    return not _SECRET.search(name) or bool(_NO_SECRET.search(name) and not _SECRET.search(_NO_SECRET.sub("", name)))


def filtered(environ: Dict[str, str], prefix: str = "") -> Dict[str, str]:
    """The variables that may be kept, by name, with logins taken out of addresses."""
    return {
        name: _LOGIN.sub(r"\1", environ[name])[:VALUE_LIMIT]
        for name in sorted(environ)
        if name.startswith(prefix) and wanted(name)
    }


class Settings(TreeProbe):
    """The collector's own environment and the files that NCCL reads."""

    id = "settings"
    kind = "settings"
    file = "trees/settings.tree"
    about = "NCCL, CUDA, UCX, MPI, Slurm and Kubernetes variables, nccl.conf files"
    needs = "nothing"

    def paths(self) -> Optional[List[str]]:
        return ["environ", *CONFIG, "HOME/.nccl.conf", NAMESPACE]

    def collect(self, tree: Tree, ctx: Context) -> None:
        environ = ctx.environ if ctx.live else {}
        tree.mark("environ")  # that nothing is set is a fact as well
        for name, value in filtered(environ).items():
            tree.line("environ", "%s=%s" % (name, value))
        for path in CONFIG:
            tree.text(path)
        home = environ.get("HOME", "")
        if os.path.isabs(home):
            self._own(tree, ctx, home.strip("/") + "/.nccl.conf")
        named = environ.get("NCCL_CONF_FILE", "")
        if os.path.isabs(named):
            tree.text(named.lstrip("/"))
        tree.text(NAMESPACE)

    @staticmethod
    def _own(tree: Tree, ctx: Context, path: str) -> None:
        """The user's own file, under a name that does not tell who that is."""
        try:
            data = ctx.root.read(path)
        except OSError:
            return
        text = data.decode("utf-8", "surrogateescape")
        tree.put("HOME/.nccl.conf", text[:-1] if text.endswith("\n") else text)


def probes() -> List[Probe]:
    return [Settings()]
