"""The transports, one line each."""

from __future__ import annotations

from topodiag.fleet.collect.interface import Transport
from topodiag.fleet.collect.kubectl import Kubectl
from topodiag.fleet.collect.share import Share
from topodiag.fleet.collect.srun import Srun
from topodiag.fleet.collect.ssh import Ssh

TRANSPORTS: dict[str, type[Transport]] = {kind.name: kind for kind in (Ssh, Srun, Kubectl, Share)}
