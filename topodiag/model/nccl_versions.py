"""The NCCL versions whose decisions are known: their range, how they are written, and what NCCL does differently from
version to version: every difference that a decision here depends on, by name, and the tables that go by version.

Versions are minor numbers throughout: 28 stands for NCCL 2.28 (its last patch). A feature holds from its first version
on, to its last one where it was given up. Beside each stands the file of NCCL's source that decides it, read at the
last patch of every version (`LAST_PATCHES`). To add a version that decides as the one before it, add its line to
nccl_versions.toml.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum, unique
from functools import cache
from typing import Generic, TypeVar

from topodiag.lazy import dataclass, regex
from topodiag.model.nccl_enums import PathType
from topodiag.words.own_data import own_data
from topodiag.words.units import runs

STILL = 1 << 30
"""The last version of what is still so."""


@unique
class Feature(Enum):
    """`NAME = first version, what it is and where it stands, last version`."""

    def __init__(self, since: int, source: str, until: int = STILL) -> None:
        self.since = since
        self.source = source
        self.until = until

    # What a topology file may hold: src/graph/xml.h, xml.cc, topo.h, topo.cc
    C2C_LINKS = 19, "xml.cc: c2c elements of a gpu"
    PCI_LINKS = 22, "xml.cc: pcilink elements of a pci"
    CHILDREN_CHECKED = 21, "xml.cc: too many children are refused; before, they are written past their table"
    QUOTES_KEPT = 27, "xml.cc, xmlGetValue: the quote that opens a value ends it; before, any double quote does"
    CX8_CLASS = 28, "topo.cc, kvDictPciClass: class 0x080100 is a PCI switch"
    GIN_NETS = 29, "topo.cc: net elements say by net= and gin= whose they are"
    RMA_NETS = 30, "topo.cc: net elements may be of RMA too"
    RAILS_AND_PLANES = 30, "search.cc: NETs of one rail or plane belong together"
    SYMMETRIC_KERNELS = 27, "symmetric.cc, later ce_coll.cc: kernels and copies for buffers in registered windows"
    RAILS_OF_ADAPTERS = 32, "net_ib/init.cc: NCCL_IB_RAIL_POLICY gives ports of ConnectX-9 rails and planes"
    RAIL_OF_EVERY_NET = 32, "topo.cc, ncclTopoGetRailPlane: a NET without rail or plane takes its adapter and port"
    MLOPART = 30, "topo.cc: a GPU may be two partitions"

    # From the file to the graph: src/graph/xml.cc, topo.cc, topo.h
    MNNVL = 21, "topo.cc, ncclTopoGetSystem: hosts of one clique share a topology, told apart by host_hash"
    FUSED_TREES = 22, "xml.cc, ncclTopoFuseXml: each rank keeps its own GPU, and the ranks' trees are joined"
    EMPTY_NICS_KEPT = 22, "xml.cc, ncclTopoTrimXml: only pci and cpu go where nothing is left below", 26
    GPU_DEVICES = 30, "topo.cc: a GPU is a DEV with the links, and a GPU vertex for each rank on it"
    VIRTUAL_NICS = 24, "topo.cc, ncclTopoProcessNet: ports of one adapter are merged into a virtual NIC"
    SINGLE_VIRTUAL_NICS = 24, "topo.cc, ncclTopoMakeVnic: a port that is merged with none is one, too", 26
    MERGE_MAY_FAIL = 26, "topo.cc, ncclTopoAutoMerge: ports that cannot be merged stay apart; before, NCCL stops"
    VIRTUAL_NIC_IN_FUNCTION = 27, "topo.cc, ncclFindFirstPciParent: a virtual NIC is in its ports' PCI function"
    VIRTUAL_NIC_WIDENS = 28, "topo.cc, ncclTopoGetVNicParent: a virtual NIC has the lanes of all its ports"
    PORTS_WIDENED_TOO = 28, "topo.cc, ncclTopoWidenLinks: those of the ports and all above them, too", 29
    FAR_PORTS_REFUSED = 30, "topo.cc, ncclTopoGetVNicParent: no virtual NIC of ports below two CPUs"
    MERGE_BY_RAIL = 30, "topo.cc, ncclTopoGetMergePolicy: NCCL_NET_MERGE_POLICY"
    NIC_BY_FULL_BUS_ID = 24, "topo.cc: a NIC is found by host and whole bus id; before, without the function"
    ASIC_BY_ANY_GUID = 28, "topo.cc: a guid is hexadecimal without 0x too, and a net without one has its id"
    GEN5_SWITCHES = 20, "topo.cc, ncclTopoFlattenBcmSwitches: Broadcom Gen5 switches, told by their level"
    FLATTEN_FROM_FIRST = 27, "topo.cc: after a flattened switch the look starts again at the first, not the second"
    AMD_CPU_LINKS = 19, "topo.cc, ncclTopoGetInterCpuBw: AMD's CPUs have a figure"
    AMD_CPU_GENERATIONS = 31, "topo.h, topo.cc: AMD's figure goes by generation, 16, 24 or 32 GB/s; 16 before"
    INTEL_BELOW_EMERALD = 31, "topo.cc: models 0xAD to 0xAF (Granite Rapids, Sierra Forest) count as Emerald Rapids"
    LATER_INTEL_CPUS = 26, "topo.cc: Sapphire Rapids and Emerald Rapids have models of their own"
    RUBIN = 32, "cudawrap.h, topo.h, search.cc: Rubin, compute capability 10.7, has figures of its own"
    HOPPER_NVLINK_20_6 = 20, "topo.h: SM90_NVLINK_BW 20.6; 20.0 before"
    BLACKWELL = 25, "topo.h, search.cc, nvls.cc: figures for compute capability 10.0"
    BLACKWELL_NVLINK_40_1 = 27, "topo.h: SM100_NVLINK_BW 40.1; 40.0 before"
    ONE_GPU_TOTAL_BW = 21, "search.cc: a GPU alone has a total bandwidth; before, NCCL divides by zero"
    NETS_KEPT_IN_NODE = 28, "paths.cc, ncclTopoTrimSystem: a communicator of one node keeps its NETs"

    # Paths: src/graph/paths.cc, topo.cc
    LINK_BACK_BY_TYPE = 19, "paths.cc and search.cc, findRevLink: the link back is of the same type; before, the first"
    PATHS_START_APART = 21, "paths.cc: paths not yet found are of type DIS; before, of type 0"
    OWN_PATHS_START_APART = 23, "paths.cc: those in a vertex's own table too"
    NO_LINK_TO_ITSELF = 22, "topo.cc: a GPU has no link to itself"
    UNREACHED_PASSED_OVER = 23, "paths.cc, search.cc: what is 0 hops away is out of reach, not nearest"
    LOCAL_CPU_BY_PATH = 30, "paths.cc, ncclGetLocalCpu: the CPU with the best path; before, the one with fewest hops"
    LOCAL_GPU_AMONG_NEAREST = 19, "topo.cc, ncclTopoGetLocalGpu: among the GPUs nearest to the NET; before, among all"
    NETS_SHARED_IN_TURN = 30, "topo.cc, ncclTopoGetLocalNet: a GPU's first NET is by its place among its sharers", 30
    NETS_SHARED_IN_TURN_AT_CX8 = 31, "topo.cc: so for Blackwell with ConnectX-8, or NCCL_TOPO_SCATTER_START_NET", 31
    NETDEVS_POLICY = 28, "topo.cc: NCCL_NETDEVS_POLICY"
    P2P_ON_SMALL_AMD = 23, "paths.cc, ncclTopoCheckP2p: P2P over CPUs on AMD with two GPUs only"
    C2C_PATHS = 26, "paths.cc, topo.h: C2C is a path type; NVL before"
    P2C = 27, "paths.cc: P2C, from C2C to a NIC below its CPU, is a path type"
    P2C_FOR_NEAREST_NETS = 29, "paths.cc: P2C is for the NICs nearest to the GPU; for others PXN is better"
    GDR_OVER_C2C = 26, "paths.cc, ncclTopoCheckGdr: a path over C2C counts as C2C", 28
    GDR_UP_TO_P2C = 29, "paths.cc, ncclTopoCheckGdr: GPUDirect RDMA up to P2C by default"
    GDR_READ_FROM_AMPERE = 19, "paths.cc: GPUDirect reads on Ampere and later without NVLink too"
    GDR_LEAVES_CPU_PATHS = 21, "paths.cc: without GPUDirect a path over a CPU stays as it is"
    NET_GDR_C2C_ON = 27, "paths.cc: NCCL_NET_GDR_C2C is 1 by default"
    PXN_C2C_ON = 28, "paths.cc: NCCL_PXN_C2C is 1 by default"
    PXN_NEEDS_GDR = 30, "paths.cc: no PXN over a GPU that has no GPUDirect to the NIC"

    # The channel search: src/graph/search.cc
    COLLNET_DIRECT_SEARCH = 22, "init.cc: CollNet direct has a search of its own"
    TYPES_FROM_PATHS = 25, "search.cc, ncclTopoCompute: types go from the least to the greatest that a GPU's paths have"
    TREES_BOUND_BY_PXN = 25, "search.cc, ncclTopoCompute: no path beyond the longest from a GPU to a NIC", 28
    """Where PXN shortens all of those, GPUs before Hopper find no tree, and the one channel of the stand-in is left for
    all algorithms (2.29.2 took the bound away again for them; github.com/NVIDIA/nccl/issues/1748)."""
    CROSS_NIC_2 = 19, "search.cc: NCCL_CROSS_NIC=2 tries without crossing first"
    CROSS_NIC_IN_PAIRS = 23, "search.cc: a search that crosses NICs pairs channels, for rings and balanced trees only"
    CHANNELS_PAIRED = 20, "search.cc: every odd channel runs the NETs of the one before in the other direction"
    CROSSING_NOT_WEIGHED = 20, "search.cc, ncclTopoCompareGraphs: crossing NICs need not be worth 15 %"
    HEADS_WITHIN_ARITY = 25, "search.cc: heads are bounded by NCCL_MAX_NVLS_ARITY and NCCL_MAX_DIRECT_ARITY"
    NVLS_BY_SPEED = 19, "search.cc: a channel for each GPU, and more speed between nodes is better"
    SPLIT_NVLINK = 26, "search.cc, ncclTopoSplitNvLink: two groups of NVLink need two channels"
    AMD_KEEPS_SAME_CHANNELS = 19, "search.cc: different channels are not tried over the CPUs of AMD"
    DOUBLED_BEFORE_PASS_2 = 19, "search.cc, ncclTopoDupChannels: channels are doubled before more speed is tried"
    RINGS_IN_PASS_2 = 19, "search.cc: rings are tried with more speed too"
    APART_NOT_FOLLOWED = 27, "search.cc, ncclTopoFollowPath: a path of type DIS is not followed"
    NO_HOPS_FOLLOWED = 21, "search.cc, ncclTopoFollowPath: a path of no hops is checked like others"
    CPU_LINK_BACK_ON_POWER = 19, "search.cc: NVLink to a CPU takes the way back too, on Power only"
    FALL_BACK_WITH_NETS = 29, "search.cc: the channel that stands in goes through the NETs of its GPUs"
    NET_ERRORS_END_SEARCH = 31, "search.cc, ncclTopoSearchRec: an error at the NETs ends the start; before, one attempt"
    NVSWITCH_NEIGHBOURS = 19, "search.cc: with an NVSwitch the GPUs next to a GPU come first"
    NEIGHBOURS_ONLY = 21, "search.cc: and no others"
    NO_PCI_ORDER_ON_NVSWITCH = 19, "search.cc: the PCI order is not tried with an NVSwitch"
    NETS_UP_TO_CHANNELS = 21, "search.cc, ncclTopoSelectNets: at most MAXCHANNELS NETs are looked at"
    NETS_BY_TURN_OF_GPUS = 27, "search.cc, ncclTopoSelectNets: with several hosts one NET of every GPU at a time"
    NETS_IN_TURN = 19, "search.cc: each channel starts at the next NET, and the GPUs from a NET come in turn"
    STARTS_AT_LOCAL_GPU = 27, "search.cc: from a NET to its own GPU, then to those nearest; before, by the widest path"
    ORDERS_NOT_REPLAYED = 27, "search.cc: the order of the channel before is not tried again unless all are the same"
    HEAD_OF_ITS_NET = 19, "search.cc: the head of a channel is the GPU of the NET it came from"
    HEADS_OF_FIRST_NET = 19, "search.cc: NVLS tries the first NET only", 21
    HEADS_ONCE = 22, "search.cc: a GPU is a head once, and a channel that found one tries no other NET"
    HEADS_GIVE_BACK = 23, "search.cc: a NET whose GPU is a head already gets its bandwidth back"

    # From search channels to a communicator: src/init.cc, src/graph/connect.cc, rings.cc, paths.cc, transport/nvls.cc
    DISTINCT_HEADS = 20, "connect.cc: a head that comes twice counts once"
    CROSS_NIC_AGREED = 21, "init.cc: ranks agree on crossNic"
    NODES_SWAP_CHANNELS = 20, "connect.cc: odd nodes exchange channels 2k and 2k+1 where rings cross NICs"
    ODD_NODES_SWAP_TOO = 21, "connect.cc: on an odd number of nodes too"
    SWAP_BY_CROSS_NIC_2 = 26, "connect.cc: where crossNic is 2 only"
    SWAP_BY_OWN_CROSS_NIC = 28, "connect.cc: each node goes by its own crossNic"
    EXTRA_CHANNELS_BELOW_16 = 20, "connect.cc: fast rings are doubled below 16 channels; before, up to MAXCHANNELS"
    EXTRA_CHANNELS_BLACKWELL = 25, "connect.cc: Blackwell's rings are doubled too"
    CHANNELS_UP_TO_NVLS = 20, "init.cc: channels are repeated up to the NVLS channels", 27
    NVLS_OFF_TOO_LATE = 20, "init.cc: that NVLS is off is known after its channels were counted", 20
    NVLS_OF_TWO_GPUS = 28, "transport/nvls.cc: NVLS with two GPUs; three before"
    NVLS_CHANNELS_ONE_NODE = 27, "transport/nvls.cc: fewer channels for one node of Blackwell"
    NVLS_CHANNELS_BY_NET = 30, "transport/nvls.cc, ncclNvlsTreeSm100Tuning: Blackwell's channels go by nodes and NETs"
    NVLS_NCHANNELS_FROM_1 = 27, "transport/nvls.cc: NCCL_NVLS_NCHANNELS=0 is not taken"
    COLLNET_ANY_RANKS = 23, "init.cc: CollNet with more than 8 ranks of a node"
    COLLNET_CHANNELS_COUNTED = 20, "init.cc: the line of channels counts CollNet's where it is on"
    COLLNET_CHANNELS_ALWAYS = 21, "init.cc: whether it is on or not"
    MIXED_CPUS = 22, "init.cc: NCCL_TOPO_CPU_ARCH_MIXED and _VENDOR_MIXED where ranks differ"
    NET_COUNTS_MATCH = 30, "init.cc: ranks with different numbers of network devices are refused"
    PEER_CHANNELS_BY_NET = 20, "paths.cc: channels to a remote peer by the NETs that fill a GPU's link"
    PEER_CHANNELS_WITHIN_ALL = 22, "paths.cc: no more channels per peer than in all"
    PEER_CHANNELS_AGREED = 29, "paths.cc: ranks agree on the channels per peer; NCCL_P2P_PER_CHANNEL_NET_BW"
    PEER_CHANNELS_OVER_NVB = 30, "paths.cc: NVLinks over another GPU count"

    # The tuning model: src/graph/tuning.cc, src/enqueue.cc. Every one is the version whose source first has the step.
    PAT = 23, "the algorithm PAT"
    PAT_FROM_PASCAL = 26, "PAT needs compute capability 6.0"
    LISTS_PER_COLLECTIVE = 24, "parseList: NCCL_ALGO and NCCL_PROTO by collective; unknown words are refused"
    COLLNET_LISTS_HOLD = 24, "a list that names nothing but a CollNet that is off leaves nothing"
    RING_MAY_BE_LEFT_OUT = 19, "a list without rings leaves them out for all collectives"
    RING_BACKUP = 19, "rings come back where a user's lists leave nothing", 23
    BACKUP_KEEPS_PROTOCOLS = 22, "protocols that are off stay off then"
    LL128_C2C = 27, "NCCL_LL128_C2C: LL128 on Hopper up to PXN"
    LL128_FROM_VOLTA = 27, "LL128 on every compute capability from 7.0 on"
    LL128_ON_MIXED_HOPPER = 30, "LL128 on unequal GPUs from Hopper on"
    MIXED_CPUS_LL = 24, "LL between nodes whose CPUs differ counts as AMD's"
    SHARDED_NVLS = 19, "AllGather and ReduceScatter over NVLS"
    SHARDED_COLLNET_DIRECT = 20, "AllGather and ReduceScatter over CollNetDirect"
    SHARDED_NVLS_OVER_NODES = 27, "AllGather and ReduceScatter over NVLS between nodes, by all GPUs' share of the links"
    SHARDED_BY_BUS = 23, "AllGather's and ReduceScatter's figure is the bus bandwidth but for rings"
    NVLS_MODEL = 19, "NVLS has a bandwidth and latency by its graph"
    NVLS_EFFICIENCY = 28, "nvlsEfficiency: NVLS by its channels; it needs two of them"
    RING_LL_HALF = 21, "LL of a ring is half; before, a third or a quarter"
    RING_LL128_EVEN_ALONE = 23, "LL128 of a ring is 0.92 with one GPU a node too"
    TREE_PATTERN_AGREED = 26, "the pattern of trees is the greatest of all ranks"
    STEPS_ALONE_EXPOSED = 23, "with one GPU a node steps of a ring between nodes cost as a tree's"
    TREE_STEPS_ALONE = 23, "so do those of all other algorithms", 30
    RING_CROSSINGS_EXACT = 23, "steps of a ring between nodes; before, one too many per direction"
    SIZES_BELOW_64_APART = 22, "ncclTopoGetAlgoTime: sizes below 64 bytes have no correction"
    NVLS_TREE_CORRECTED = 29, "treeCorrectionFactor for NVLSTree on Blackwell and x86"
    COLLNET_DIRECT_BOUND = 23, "enqueue.cc: CollNetDirect up to 8 ranks of a node"
    COLLNET_CHAIN_BOUND = 28, "enqueue.cc: CollNetChain too"
    NVLS_BOUND = 25, "enqueue.cc: sharded NVLS up to NCCL_MAX_NVLS_ARITY ranks"

    MODEL_PER_ALGORITHM = 31, "src/tuning/{ring,tree,nvls,collnet,pat}.cc: each algorithm has formulas of its own"
    POWER_FAVOURS_TREES = 18, "trees of Simple over PCI take as long as rings on Power", 30
    COLLNET_DIRECT_ON_NVSWITCH = 18, "CollNetDirect needs an NVSwitch", 30
    PAT_OVER_NVLS = 31, "src/tuning/pat.cc: PAT between nodes of several GPUs, where nothing else is left"
    RING_PLATEAU_ON_BLACKWELL = 31, "src/tuning/ring.cc: the plateau of rings on one NVLink node, as for AllGather"
    NVLS_CHANNELS_BOUND = 31, "src/tuning/nvls.cc: sharded NVLS up to NCCL_MAX_NVLS_ARITY channels of its graph"
    ALGO_LIST_IS_ALL = 31, "src/tuning/cost_model.cc: NCCL_ALGO takes what it omits from collectives of NCCL_PROTO"
    RING_PLATEAU_BY_STEPS = 32, "src/tuning/ring.cc: that plateau is for AllReduce too, and grows by ring steps"
    NVLS_TREE_CORRECTED_ON_ARM = 31, "src/tuning/nvls.cc: NVLSTree on Arm with four GPUs a node and NICs of 96 GB/s"
    LAST_OF_EQUALS = 31, "src/tuning/tuning.cc: of two equally fast ones the last is taken; before, the first"

    # What logs show
    INIT_START = 18, "init.cc: a line `Init START` comes before any connection"
    LAZY_CONNECTIONS = 22, "init.cc, NCCL_RUNTIME_CONNECT: a connection is made when an operation first needs it"
    AFFINITY_OF_PROCESSES = 28, "init.cc: the affinity of a process is printed beside its GPU's"
    RANKS_SHARE_A_GPU = 30, "init.cc, NCCL_MULTI_RANK_GPU_ENABLE"


def has(minor: int, feature: Feature) -> bool:
    """Whether NCCL 2.`minor` has a feature."""
    return feature.since <= minor <= feature.until


_NOT_RUBIN = (110, 120, 121)
"""Thor, and Blackwell of workstations."""


def is_rubin(sm: int, minor: int) -> bool:
    """Whether NCCL counts a compute capability, as 107 for 10.7, as Rubin (RUBIN_AND_LATER)."""
    return has(minor, Feature.RUBIN) and sm >= 107 and sm not in _NOT_RUBIN


_T = TypeVar("_T")

LAST_PATCHES: Mapping[int, str] = {
    int(minor): patch for minor, patch in own_data("model/nccl_versions")["last_patches"].items()
}
"""Every version whose decisions are known, and the patch whose source was read.

Of 2.31 and 2.32 whole communicators of the released libraries on emulated hardware were compared: paths, graphs,
orders, channels, virtual NICs and tuning tables (benchmarks/nccl_agreement.py --comms). src/tuning is that of the
releases; the rest of src/init.cc was read on the public branch `dev` of June 2026 (2.31.0a7), one slip of which is not
taken over: NVLSTree finds no graph there, as it is not copied, and a release with it would lose most of its speed
between nodes.
Not modelled: the tuning of 2.32 for Rubin, and the rails that 2.32 gives ConnectX-9."""
DEFAULT = 28
DEFAULT_VERSION = f"2.{DEFAULT}"
"""What is asked where nobody names a version."""

KNOWN = tuple(LAST_PATCHES)
OLDEST, NEWEST = KNOWN[0], KNOWN[-1]
NEWEST_RUN = 30
"""The newest version whose runs were compared: what a run is taken for that does not say its version."""
VARIABLES_SINCE = 4
"""The first version whose environment variables are known by name."""

_VERSION = regex(r"v?2\.([0-9]{1,3})(?:\.[0-9]{1,4})?(?:[-+].*)?")
_LOGGED = regex(r"2\.([0-9]{1,5})(?:[.+-].*)?")
_NUMBER = regex(r"[0-9]{1,4}(?:\.[0-9]{1,4}){1,3}")
_SHOWN = 40


class UnknownVersionError(ValueError):
    """A text that is no version of NCCL, or a version older than all that are known."""


def spell_version(minor: int) -> str:
    """`2.28` for 28."""
    return f"2.{minor}"


def spell_range(first: int = OLDEST, last: int = NEWEST) -> str:
    """`2.18 to 2.30`; by default the versions whose decisions are known."""
    return spell_version(first) if first == last else f"{spell_version(first)} to {spell_version(last)}"


def spell_versions(minors: Iterable[int]) -> str:
    """`2.18 to 2.30`, `2.28`, `2.18 to 2.20 and 2.29`."""
    return " and ".join(spell_range(first, last) for first, last in runs(minors))


def read_minor(text: str) -> int | None:
    """28 for `2.28`, `2.28.9`, `v2.28.9-1`, known or not; None for what is no version of NCCL 2."""
    match = _VERSION.fullmatch(text.strip())
    return int(match[1]) if match else None


def minor_of(text: str) -> int:
    """The known version by whose rules NCCL `text` is judged: its own, or the newest for a newer one (`assumption`
    says so). Raises UnknownVersionError for an older one, and for what is no version."""
    minor = read_minor(text)
    if minor is None or minor < OLDEST:
        raise UnknownVersionError(f"{text[:_SHOWN]!r} is not an NCCL version from {spell_range()}")
    return min(minor, NEWEST)


def nearest_minor(text: str) -> int:
    """`minor_of`, but the oldest known version for an older one. Raises UnknownVersionError for what is no version."""
    minor = read_minor(text)
    return minor_of(text) if minor is None else max(OLDEST, min(minor, NEWEST))


def minor_or_default(text: str) -> int:
    """`nearest_minor`, and DEFAULT for what is no version of NCCL 2."""
    return DEFAULT if read_minor(text) is None else nearest_minor(text)


def is_newer(text: str) -> bool:
    """Whether a version is newer than all that are known."""
    minor = read_minor(text)
    return minor is not None and minor > NEWEST


def assumption(text: str) -> str:
    """What is assumed about a version whose own rules are not known, as a sentence; "" for a known one."""
    minor = read_minor(text)
    if minor is None or OLDEST <= minor <= NEWEST:
        return ""
    order, most, last = ("newer", "newest", NEWEST) if minor > NEWEST else ("older", "oldest", OLDEST)
    known = spell_version(last)
    words = f"NCCL {spell_version(minor)} is {order} than {known}, the {most} version known here"
    return f"{words}: it is taken to decide as {known} does"


def number_of(text: str) -> str:
    """The version as a number alone: `2.21.5` of `2.21.5+cuda12.4` and of `2.21.5-HEAD:d7b4b47`; a text without one as
    it is."""
    match = _NUMBER.match(text)
    return match[0] if match is not None else text


def text_has(text: str, feature: Feature) -> bool:
    """Whether a version as a log writes it, known or not, has a feature; one that cannot be read has none."""
    match = _LOGGED.fullmatch(text)
    return match is not None and has(int(match[1]), feature)


class ByVersion(Generic[_T]):
    """A table that changed with the versions: each entry holds from its version on. A data file has them as texts.

    Raises ValueError, when it is made, for a table that says nothing of the oldest known version, or speaks of one that
    LAST_PATCHES lacks: a table must not answer for a version by accident.
    """

    def __init__(self, table: Mapping[int, _T] | Mapping[str, _T]) -> None:
        entries = {int(since): value for since, value in table.items()}
        if min(entries) != OLDEST or not set(entries) <= set(KNOWN):
            raise ValueError(f"a table for {sorted(entries)} must begin with {OLDEST} and speak of known versions only")
        changes = sorted(entries)
        self._entries = {minor: entries[max(since for since in changes if since <= minor)] for minor in KNOWN}

    def __getitem__(self, minor: int) -> _T:
        return self._entries[minor]


MAX_CHANNELS = ByVersion({18: 32, 25: 64})
"""MAXCHANNELS (src/include/device.h)."""
MAX_VERTICES = ByVersion({18: 256, 27: 576, 29: 640})
"""NCCL_TOPO_MAX_NODES (src/graph/topo.h): vertices of a kind."""
MAX_LINKS = ByVersion({18: 32, 21: 128, 25: 576})
"""NCCL_TOPO_MAX_LINKS (src/graph/topo.h): links of a vertex."""
MAX_ELEMENTS = ByVersion({18: 1024, 21: 256})
"""Elements of a topology file: MAX_NODES, then NCCL_TOPO_XML_MAX_NODES (src/graph/xml.h)."""
MAX_CHILDREN = ByVersion({18: 32, 21: 128, 29: 640})
"""Children of an element of a topology file: MAX_SUBS (src/graph/xml.h)."""
DIRECT_RANKS, NVLS_RANKS = 8, 32
"""GPUs of a node that CollNet direct and NVLS join, and most heads of their graphs: NCCL_MAX_DIRECT_ARITY + 1 and
NCCL_MAX_NVLS_ARITY (src/include/device.h)."""

_PATHS_SINCE = {PathType.C2C: Feature.C2C_PATHS, PathType.P2C: Feature.P2C}
"""Path types that came later; the others are as old as the oldest version."""


@dataclass(frozen=True, slots=True)
class PathTypes:
    """The numbers of a version's path types: the search steps through them. A type that the version lacks has the
    number of what it used instead: C2C is NVL before 2.26; P2C does not arise before 2.27 and has PHB's number there.
    """

    names: tuple[str, ...]
    loc: int
    nvl: int
    nvb: int
    c2c: int
    pix: int
    pxb: int
    p2c: int
    pxn: int
    phb: int
    sys: int
    net: int
    dis: int

    @property
    def numbers(self) -> Mapping[str, int]:
        return {name: number for number, name in enumerate(self.names)}


@cache
def path_types(minor: int) -> PathTypes:
    names = tuple(t.name for t in PathType if t not in _PATHS_SINCE or has(minor, _PATHS_SINCE[t]))
    of = {name: number for number, name in enumerate(names)}
    of.setdefault("C2C", of["NVL"])
    of.setdefault("P2C", of["PHB"])
    return PathTypes(names, **{name.lower(): number for name, number in of.items()})
