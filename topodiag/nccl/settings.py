"""The environment variables that change NCCL's topology decisions, as typed values with NCCL's defaults.

Names and defaults: NCCL_PARAM lines of src/graph/{paths,search,topo,tuning,connect}.cc, src/init.cc.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from topodiag.lazy import dataclass
from topodiag.model.nccl_versions import Feature, has, path_types
from topodiag.words.own_data import own_data

_LEVELS_OLD = ("LOC", "PIX", "PXB", "PHB", "SYS", "SYS")
"""What the integers 0..5 of NCCL_P2P_LEVEL and NCCL_NET_GDR_LEVEL mean (src/graph/paths.cc, ncclGetLevel)."""
_DIGITS = 18


@dataclass(frozen=True, slots=True)
class Settings:
    """None: not set, NCCL decides. Levels are path type numbers of the version."""

    values: Mapping[str, str] = field(default_factory=dict)
    """Every NCCL_ variable as given, for those that a part reads itself (NCCL_ALGO, NCCL_PROTO, ...)."""
    cross_nic: int = 2
    nvb_disable: bool = False
    pxn_disable: bool = False
    pxn_c2c: bool = True
    net_gdr_c2c: bool = True
    net_gdr_read: int | None = None
    net_disable_intra: bool = False
    shm_disable: bool = False
    p2p_level: int | None = None
    gdr_level: int | None = None
    nvls_enable: bool = True
    collnet_enable: bool = False
    ll128_c2c: bool = True
    pat_enable: int = 2

    def __hash__(self) -> int:
        return hash(frozenset(self.values.items()))

    @property
    def algo(self) -> str | None:
        return self.values.get("NCCL_ALGO")

    @property
    def proto(self) -> str | None:
        return self.values.get("NCCL_PROTO")

    def number(self, *names: str) -> int | None:
        """An integer variable, for those without a field here, by its name or a former one; None when unset, empty or
        no number."""
        return next((value for name in names if (value := _number(self.values, name)) is not None), None)


def not_followed(env: Mapping[str, str]) -> tuple[str, ...]:
    """A sentence for each setting that asks for something that is not modelled."""
    known = own_data("nccl/settings")
    return tuple(
        f"{name} is not followed: {what}"
        for name, what in known["not_followed"].items()
        if env.get(name, followed := known["followed"].get(name, "0")) != followed
    )


def _number(env: Mapping[str, str], name: str) -> int | None:
    """An integer as NCCL_PARAM reads it (strtoll, base 0); None when unset, empty or no number."""
    text = env.get(name, "").strip()
    digits = text.lstrip("+-")
    if not digits or len(digits) > _DIGITS:
        return None
    try:
        return int(text, 8 if len(digits) > 1 and digits[0] == "0" and digits[1] not in "xX" else 0)
    except ValueError:
        return None


def level(text: str | None, minor: int) -> int | None:
    """A path level by name or by the old integers; None when unset or unknown."""
    if text is None:
        return None
    types = path_types(minor)
    word = text.strip().upper()
    if word in types.numbers and word not in ("NET", "DIS"):
        return types.numbers[word]
    if word.isdigit() and len(word) < _DIGITS:
        return types.numbers[_LEVELS_OLD[min(int(word), len(_LEVELS_OLD) - 1)]]
    return None


def read_settings(env: Mapping[str, str], minor: int) -> Settings:
    """The settings of a process with this environment under NCCL 2.`minor`."""

    def number(name: str, default: int) -> int:
        value = _number(env, name)
        return default if value is None else value

    def flag(name: str, default: bool) -> bool:
        return number(name, default) != 0

    p2p_level = level(env.get("NCCL_P2P_LEVEL"), minor)
    if flag("NCCL_P2P_DISABLE", False):
        p2p_level = path_types(minor).loc
    return Settings(
        values={name: value for name, value in env.items() if name.startswith("NCCL_")},
        cross_nic=number("NCCL_CROSS_NIC", 2),
        nvb_disable=flag("NCCL_NVB_DISABLE", False),
        pxn_disable=flag("NCCL_PXN_DISABLE", False),
        pxn_c2c=flag("NCCL_PXN_C2C", has(minor, Feature.PXN_C2C_ON)),
        net_gdr_c2c=flag("NCCL_NET_GDR_C2C", has(minor, Feature.NET_GDR_C2C_ON)),
        net_gdr_read=_number(env, "NCCL_NET_GDR_READ"),
        net_disable_intra=flag("NCCL_NET_DISABLE_INTRA", False),
        shm_disable=flag("NCCL_SHM_DISABLE", False),
        p2p_level=p2p_level,
        gdr_level=level(env.get("NCCL_NET_GDR_LEVEL", env.get("NCCL_IB_GDR_LEVEL")), minor),
        nvls_enable=flag("NCCL_NVLS_ENABLE", True),
        collnet_enable=flag("NCCL_COLLNET_ENABLE", False),
        ll128_c2c=flag("NCCL_LL128_C2C", True),
        pat_enable=number("NCCL_PAT_ENABLE", 2),
    )
