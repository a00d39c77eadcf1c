"""Which variables of an environment are kept, and of which form the value of each is.

A name that is not here is not kept. A value that is not of the form that its variable takes is replaced, and what
stands there says so: `NCCL_ALGO=<replaced: not known words>`. No form takes a sentence, an assignment or a login.
"""

import difflib
import re
from typing import Callable, Dict, FrozenSet, Iterable, Mapping, Optional, Pattern, Tuple

from topodiag_probes.secrets import holds_secret

VALUE_LIMIT = 4096
"""Characters of one value."""

_NUMBER = re.compile(
    r"(?i)\s*(?:[+-]?(?:0x[0-9a-f]{1,16}|[0-9]{1,20}(?:\.[0-9]{1,6})?)\s?(?:[kmgt]i?b?|[mun]?s|b)?"
    r"|true|false|yes|no|on|off|y|n|t|f|enabled?|disabled?|auto|try|none|default|inf|unlimited|lazy|eager|)\s*\Z"
)
_NUMBERS = re.compile(r"(?i)[-+0-9a-fx,:;.()*/ ]{0,4096}\Z")
_SOME_NUMBERS = re.compile(r"(?i)\s*[-+]?[0-9x]")
_WORDS_TEXT = (
    # NCCL's own: algorithms, protocols, collectives, levels, subsystems, modes (src/ of NCCL 2.30, env.rst).
    "ring tree collnet collnetdirect collnetchain nvls nvlstree pat ll ll128 simple allreduce allgather reducescatter"
    " broadcast reduce alltoall sendrecv gather scatter send recv allgatherv loc nvl nvb c2c pix pxb p2c pxn phb sys"
    " version warn info abort trace debug none init coll p2p shm net graph tuning env alloc call proxy bootstrap reg"
    " profile ras destroy rma gin sym all ib socket ofi libfabric aws ucx gpudirecttcpx fastrak tcpx gdaki internal"
    " internalv4 parallel group af_inet af_inet6 inet inet6 ipv4 ipv6 af local global max min auto default ce kernel"
    # UCX, libfabric and MPI: transports and layers by their documented names.
    " rc rc_x rc_v rc_mlx5 rc_verbs ud ud_x ud_v ud_mlx5 ud_verbs dc dc_x dc_mlx5 sm posix sysv cma knem xpmem cuda"
    " cuda_copy cuda_ipc gdr_copy rocm rocm_copy rocm_ipc self tcp sockets mm ib efa verbs psm2 psm3 opx cxi shm"
    " efa-direct lnx rxm rxd ofi_rxm ofi_rxd udp usnic gni mrail hook vader openib ob1 cm  yalla mxm smcuda portals4"
    " uct hcoll ucc basic tuned libnbc sync inter intra han adapt xhcoll cuda tuned monitoring"
    # Binding, logging and libraries.
    " core cores socket numa hwthread board slot l1cache l2cache l3cache package node close spread master primary"
    " threads sockets places compact scatter balanced granularity fine verbose nowarnings respect norespect explicit"
    " logical physical disabled proclist bycore bysocket bynode span overload-allowed nooversubscribe oversubscribe"
    " block cyclic fcyclic plane arbitrary pack nopack mask_cpu map_cpu rank rank_ldom ldoms quiet autobind mask_mem"
    " map_mem local prefer sort nosort detail off on error fatal critical warning notice req data func poll async diag"
    " compute utility video graphics compat32 display ngx switch leaf spine debug_local debug_global pci_bus_id"
    " fastest_first"
)
_WORDS = frozenset(_WORDS_TEXT.split())
_WORD = re.compile(r"[A-Za-z0-9_-]+")
_WORDY = re.compile(r"[A-Za-z0-9_ ,;:^=+|!*()./-]{0,512}\Z")
_DEVICE = re.compile(
    r"(?:mlx[0-9]?|eth|en[a-z0-9]{0,2}|ib|ibs|ibp|bond|br|docker|lo|veth|hsn|efa|efa-direct|rdma|roce|rocep|rocem|bnxt(?:_re)?"
    r"|irdma|cxi|hfi1|opa|qede?r?|erdma|hns|mana|team|vlan|gpu|rail|nic|net|p[0-9]|em[0-9]|wl|usb|tun|tap|cni|flannel|cali"
    r"|virbr|lxc|wg|fabric|storage|stor|mgmt|data|idrac|podman|nerdctl|ionic|xsc|rxe|siw|ocrdma|cxgb[0-9]?|i40iw|vmw_pvrdma"
    r"|smi|dev)(?:[0-9_.a-zP@-]{0,14})(?::[0-9]{1,3}){0,2}\Z"
)
_SUFFIX = r"\.(?:so|xml|txt|log|conf|json|toml|csv)[0-9.%hp]{0,32}"
_PATH = re.compile(r"(?:[~.]{0,2}/[A-Za-z0-9_./+@:,%%~#${}-]{0,4095}|[A-Za-z0-9_.+%%-]{0,128}%s)?\Z" % _SUFFIX)
_PLUGIN = re.compile(r"(?:[A-Za-z][A-Za-z0-9_.+ -]{0,47}|/[A-Za-z0-9_./+-]{0,1023})?\Z")
_ONE_PATH = re.compile(
    r"(?:(?:[~.]{0,2}|\$\{?[A-Z_]{1,40}\}?)(?:/[A-Za-z0-9_./+@,%~${}-]{0,1023})?|lib[A-Za-z0-9_.+-]{1,80})?\Z"
)
_HOST = re.compile(r"\[?[A-Za-z0-9](?:[A-Za-z0-9._:%-]{0,253}[A-Za-z0-9])?\]?(?::[0-9]{1,5})?\Z|::1?\Z|\Z")
_HOSTS = re.compile(r"[A-Za-z0-9._,:\[\] -]{0,4096}\Z")
_GPUS = re.compile(
    r"(?i)(?:(?:-?[0-9]{1,4}(?::[0-9]{1,3})?|(?:GPU|MIG)-[0-9a-f/-]{4,80}|all|none|void|nodevfiles)(?:,|\Z)){0,64}\Z"
)
_CLOCK = re.compile(r"(?:%[-_0^#]?[A-Za-z0-9]|[\[\](){}:.,/ TZ_-]){0,64}\Z")
_VERSION = re.compile(r"[0-9][0-9A-Za-z.+_~-]{0,47}\Z|\Z")
_NAME = re.compile(r"[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?\Z")


def _is_words(value: str) -> bool:
    """Whether all words are known, or slips of known ones: a slip is what a check is to find."""
    if not _WORDY.match(value):
        return False
    for word in _WORD.findall(value):
        low = word.lower().strip("-")
        if _NUMBER.match(word) or low in _WORDS:
            continue
        if len(low) > 24 or not difflib.get_close_matches(low, _WORDS, 1, 0.75):
            return False
    return True


def is_device(name: str) -> bool:
    """Whether a name is like those that kernels give to network interfaces and RDMA devices."""
    return _DEVICE.match(name) is not None


class Form:
    """What values a variable takes: `what` in words, and the test. `identifies`: `--redact` replaces such values."""

    def __init__(self, what: str, test: Callable[[str], bool], identifies: bool = False) -> None:
        self.what = what
        self.test = test
        self.identifies = identifies


def _by(pattern: "Pattern[str]") -> Callable[[str], bool]:
    return lambda value: pattern.match(value) is not None


def _is_devices(value: str) -> bool:
    return all(is_device(part.strip().lstrip("=^")) for part in value.strip().lstrip("^=").split(",") if part.strip())


def _is_nccl(value: str) -> bool:
    """Of any form that a variable of NCCL takes which no table names: a new one, or a slip."""
    return any(form.test(value) for form in (NUMBER, WORDS, DEVICES))


NUMBER = Form("a number or a switch", _by(_NUMBER))
NUMBERS = Form("numbers", lambda value: bool(_NUMBERS.match(value) and (not value or _SOME_NUMBERS.match(value))))
WORDS = Form("known words", _is_words)
DEVICES = Form("names of network devices", _is_devices)
PATH = Form("a path", _by(_PATH), True)
PATHS = Form("a list of paths", lambda value: all(_ONE_PATH.match(part) for part in re.split("[: ]", value)), True)
PLUGIN = Form("the name of a plug-in", _by(_PLUGIN))
HOST = Form("a host or an address", _by(_HOST), True)
HOSTS = Form("a list of hosts", _by(_HOSTS), True)
GPUS = Form("a list of GPUs", _by(_GPUS))
CLOCK = Form("a format of the time", _by(_CLOCK))
VERSION = Form("a version", _by(_VERSION))
NAME = Form("a name", _by(_NAME), True)
NCCL = Form("a number, known words or names of network devices", _is_nccl)

_TABLE: Tuple[Tuple[Form, str], ...] = (
    (
        PATH,
        """
        NCCL_CONF_FILE NCCL_DEBUG_FILE NCCL_TOPO_FILE NCCL_TOPO_DUMP_FILE NCCL_GRAPH_FILE NCCL_GRAPH_DUMP_FILE
        NCCL_TUNER_CONFIG_FILE NCCL_CUDA_PATH NCCL_IBVERBS_LIB NCCL_HOME NCCL_ROOT NCCL_DIR NCCL_LIB_DIR
        NCCL_INCLUDE_DIR NCCL_INSPECTOR_DUMP_DIR TORCH_NCCL_DEBUG_INFO_TEMP_FILE TORCH_FR_DUMP_TEMP_FILE
        MPICH_OFI_NIC_MAPPING
        """,
    ),
    (
        PATHS,
        """
        LD_LIBRARY_PATH LD_PRELOAD
        """,
    ),
    (
        PLUGIN,
        """
        NCCL_NET NCCL_NET_PLUGIN NCCL_TUNER_PLUGIN NCCL_PROFILER_PLUGIN NCCL_ENV_PLUGIN NCCL_GIN_PLUGIN
        NCCL_RMA_PLUGIN
        """,
    ),
    (
        HOST,
        """
        NCCL_COMM_ID NCCL_HOSTID NCCL_RAS_ADDR MASTER_ADDR HOSTNAME NODE_NAME SLURMD_NODENAME POD_NAME
        KUBERNETES_SERVICE_HOST AWS_BATCH_JOB_MAIN_NODE_PRIVATE_IPV4_ADDRESS
        """,
    ),
    (
        HOSTS,
        """
        SLURM_NODELIST SLURM_JOB_NODELIST SLURM_STEP_NODELIST SLURM_TOPOLOGY_ADDR LSB_HOSTS LSB_MCPU_HOSTS
        PALS_NODELIST
        """,
    ),
    (
        NAME,
        """
        POD_NAMESPACE
        """,
    ),
    (
        NUMBERS,
        """
        NCCL_PROXY_CPUSET NCCL_RINGS NCCL_THREAD_THRESHOLDS NCCL_IB_ADDR_RANGE NCCL_MNNVL_UUID
        SLURM_TASKS_PER_NODE SLURM_JOB_CPUS_PER_NODE SLURM_GPUS_PER_NODE SLURM_GPUS_ON_NODE SLURM_JOB_GPUS
        SLURM_STEP_GPUS SLURM_CPU_BIND_LIST KMP_PLACES GOMP_CPU_AFFINITY OMPI_MCA_btl_openib_gid_index
        """,
    ),
    (
        GPUS,
        """
        CUDA_VISIBLE_DEVICES NVIDIA_VISIBLE_DEVICES HIP_VISIBLE_DEVICES ROCR_VISIBLE_DEVICES GPU_DEVICE_ORDINAL
        """,
    ),
    (CLOCK, "NCCL_DEBUG_TIMESTAMP_FORMAT"),
    (
        VERSION,
        """
        NCCL_VERSION CUDA_VERSION
        """,
    ),
    (
        DEVICES,
        """
        NCCL_SOCKET_IFNAME NCCL_IB_HCA NCCL_OOB_NET_IFNAME NCCL_RCCL_IFNAME GLOO_SOCKET_IFNAME UCX_NET_DEVICES
        FI_TCP_IFACE FI_SOCKETS_IFACE FI_EFA_IFACE OMPI_MCA_btl_tcp_if_include OMPI_MCA_btl_tcp_if_exclude
        OMPI_MCA_oob_tcp_if_include OMPI_MCA_oob_tcp_if_exclude OMPI_MCA_btl_openib_if_include
        OMPI_MCA_btl_openib_if_exclude PRTE_MCA_prte_if_include I_MPI_OFI_IFACE NVSHMEM_HCA_LIST
        NVSHMEM_BOOTSTRAP_UID_SOCK_IFNAME
        """,
    ),
    (
        WORDS,
        """
        NCCL_DEBUG NCCL_DEBUG_SUBSYS NCCL_ALGO NCCL_PROTO NCCL_SOCKET_FAMILY NCCL_IB_ADDR_FAMILY
        NCCL_LAUNCH_MODE NCCL_CHECK_MODE NVIDIA_DRIVER_CAPABILITIES TORCH_DISTRIBUTED_DEBUG TORCH_CPP_LOG_LEVEL
        CUDA_DEVICE_ORDER UCX_TLS UCX_IB_GPU_DIRECT_RDMA UCX_RNDV_SCHEME UCX_LOG_LEVEL FI_PROVIDER FI_LOG_LEVEL
        OMPI_MCA_btl OMPI_MCA_pml OMPI_MCA_mtl OMPI_MCA_coll OMPI_MCA_osc OMPI_MCA_hwloc_base_binding_policy
        OMPI_MCA_rmaps_base_mapping_policy I_MPI_FABRICS I_MPI_OFI_PROVIDER I_MPI_PIN_DOMAIN I_MPI_PIN_ORDER
        MPICH_OFI_NIC_POLICY OMP_PROC_BIND OMP_PLACES KMP_AFFINITY SLURM_CPU_BIND SLURM_CPU_BIND_TYPE
        SLURM_CPU_BIND_VERBOSE SLURM_MEM_BIND SLURM_GPU_BIND SLURM_DISTRIBUTION SLURM_TOPOLOGY_ADDR_PATTERN
        NVSHMEM_REMOTE_TRANSPORT NVSHMEM_BOOTSTRAP
        """,
    ),
    (
        NUMBER,
        """
        RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE GROUP_RANK GROUP_WORLD_SIZE NODE_RANK ROLE_RANK
        ROLE_WORLD_SIZE MASTER_PORT JOB_COMPLETION_INDEX KUBERNETES_SERVICE_PORT CUDA_LAUNCH_BLOCKING
        CUDA_DEVICE_MAX_CONNECTIONS CUDA_DEVICE_MAX_COPY_CONNECTIONS CUDA_MODULE_LOADING NVIDIA_IMEX_CHANNELS
        NVIDIA_GDRCOPY NVIDIA_MOFED SLURM_JOB_ID SLURM_JOBID SLURM_STEP_ID SLURM_STEPID SLURM_PROCID
        SLURM_LOCALID SLURM_NODEID SLURM_NTASKS SLURM_NPROCS SLURM_NTASKS_PER_NODE SLURM_NNODES
        SLURM_JOB_NUM_NODES SLURM_STEP_NUM_NODES SLURM_STEP_NUM_TASKS SLURM_STEP_TASKS_PER_NODE
        SLURM_CPUS_PER_TASK SLURM_CPUS_ON_NODE SLURM_CPUS_PER_GPU SLURM_GPUS SLURM_GPUS_PER_TASK
        SLURM_NTASKS_PER_GPU SLURM_THREADS_PER_CORE SLURM_TASK_PID OMPI_COMM_WORLD_RANK OMPI_COMM_WORLD_SIZE
        OMPI_COMM_WORLD_LOCAL_RANK OMPI_COMM_WORLD_LOCAL_SIZE OMPI_COMM_WORLD_NODE_RANK OMPI_UNIVERSE_SIZE
        PMI_RANK PMI_SIZE PMI_LOCAL_RANK PMI_LOCAL_SIZE PMI_UNIVERSE_SIZE PMIX_RANK PALS_RANKID PALS_NODEID
        PALS_LOCAL_RANKID PALS_LOCAL_SIZE MV2_COMM_WORLD_RANK MV2_COMM_WORLD_SIZE MV2_COMM_WORLD_LOCAL_RANK
        MV2_COMM_WORLD_LOCAL_SIZE FLUX_TASK_RANK FLUX_TASK_LOCAL_ID FLUX_JOB_SIZE FLUX_JOB_NNODES PBS_NODENUM
        PBS_TASKNUM PBS_NP PBS_NUM_PPN LSB_JOBID LSB_DJOB_NUMPROC AWS_BATCH_JOB_NUM_NODES
        AWS_BATCH_JOB_NODE_INDEX AWS_BATCH_JOB_MAIN_NODE_INDEX SKYPILOT_NODE_RANK SKYPILOT_NUM_NODES
        SKYPILOT_NUM_GPUS_PER_NODE OMP_NUM_THREADS FI_EFA_USE_DEVICE_RDMA FI_EFA_FORK_SAFE
        FI_EFA_SET_CUDA_SYNC_MEMOPS FI_EFA_USE_HUGE_PAGE FI_HMEM_CUDA_USE_GDRCOPY FI_MR_CACHE_MONITOR FI_CXI_ATS
        FI_CXI_DEFAULT_CQ_SIZE FI_CXI_DISABLE_HOST_REGISTER OFI_NCCL_NIC_DUP_CONNS UCX_IB_GID_INDEX
        UCX_IB_TRAFFIC_CLASS UCX_IB_SL UCX_IB_PKEY UCX_RNDV_THRESH UCX_MEMTYPE_CACHE UCX_IB_PCI_RELAXED_ORDERING
        IBV_FORK_SAFE RDMAV_FORK_SAFE RDMAV_HUGEPAGES_SAFE MLX5_SINGLE_THREADED MLX5_SCATTER_TO_CQE
        HSA_FORCE_FINE_GRAIN_PCIE HSA_ENABLE_SDMA HSA_NO_SCRATCH_RECLAIM HIP_LAUNCH_BLOCKING
        SHARP_COLL_ENABLE_SAT SHARP_COLL_LOG_LEVEL NVSHMEM_IBGDA_SUPPORT NVSHMEM_IB_ENABLE_IBGDA
        NVSHMEM_IB_GID_INDEX NVSHMEM_DISABLE_P2P NVSHMEM_SYMMETRIC_SIZE UCX_MAX_RNDV_RAILS
        SHARP_COLL_ENABLE_PCI_RELAXED_ORDERING NVSHMEM_ENABLE_NIC_PE_MAPPING NVSHMEM_MAX_TEAMS
        NVSHMEM_DISABLE_NVLS NVSHMEM_DISABLE_CUDA_VMM MPICH_GPU_SUPPORT_ENABLED MPICH_OFI_NUM_NICS I_MPI_OFFLOAD
        PSM2_CUDA PSM2_GPUDIRECT OMPI_MCA_coll_hcoll_enable OMPI_MCA_btl_openib_allow_ib
        OMPI_MCA_btl_openib_warn_default_gid_prefix
        """,
    ),
)
FORMS: Dict[str, Form] = {name: form for form, names in _TABLE for name in names.split()}
"""Form by name, for all names that are kept beside the families."""
FAMILIES: Tuple[Tuple[str, Form], ...] = (
    ("NCCL_", NCCL),
    ("RCCL_", NCCL),
    ("TORCH_NCCL_", NUMBER),
    ("TORCH_FR_", NUMBER),
    ("OFI_NCCL_", NUMBER),
    ("FI_EFA_", NUMBER),
)
"""Names that begin so are kept: a slip in a name (`NCCL_IB_HCAS`) is what a check looks for."""

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,200}\Z")
_SECRET = re.compile(r"TOKEN|SECRET|PASS|CRED|AUTH|COOKIE|JWT|KEY|PRECONDITION_TRANSPORTS", re.IGNORECASE)
_NO_SECRET = re.compile(r"_PKEY\Z|_BYPASS", re.IGNORECASE)
"""An InfiniBand partition key is a number that every port shows, and a bypass passes nothing secret."""
_LOGIN = re.compile(r"(://)[^/@\s]*@")


def form_of(name: str) -> Optional[Form]:
    """The form of a variable's values, or None for one that is not kept."""
    if not _VARIABLE.match(name) or _SECRET.search(_NO_SECRET.sub("", name)):
        return None
    if name in FORMS:
        return FORMS[name]
    return next((form for start, form in FAMILIES if name.startswith(start)), None)


def wanted(name: str) -> bool:
    """Whether a variable bears on communication and is no secret by its name."""
    return form_of(name) is not None


def kept_value(name: str, value: str, devices: Iterable[str] = ()) -> str:
    """The value, or words that say why it is not there. `devices`: names that this node's network devices have."""
    form = form_of(name)
    if form is None:
        return "<replaced: not a variable that is kept>"
    shown = value[:VALUE_LIMIT]
    known: FrozenSet[str] = frozenset(devices)
    if form in (DEVICES, NCCL) and known and _names_only(shown, known):
        return shown
    if not form.test(shown) or holds_secret("%s=%s" % (name, shown)) or holds_secret(shown):
        return "<replaced: not %s>" % form.what
    return shown


def _names_only(value: str, known: FrozenSet[str]) -> bool:
    parts = [part.strip().lstrip("=^").partition(":")[0] for part in value.strip().lstrip("^=").split(",")]
    return all(part in known or is_device(part) for part in parts if part)


def kept(environ: Mapping[str, str], devices: Iterable[str] = ()) -> Dict[str, str]:
    """The variables that are kept, by name, each with its value or what stands for it."""
    return {name: kept_value(name, environ[name], devices) for name in sorted(environ) if wanted(name)}
