"""The kinds of the `text` table: lines that are kept as they were printed, by what they speak of.

Wordings by NCCL version: src/init.cc, src/net.cc, src/graph/*.cc, src/transport/*.cc, src/misc/*.cc.

Who runs.
    version: `NCCL version 2.28.9+cuda13.0`, with or without a record's head; also `RCCL version : ..`
    git version: `NCCL git version <branch> <hash>` (2.29+)
    git mismatch: `Mismatched NCCL git versions detected: rank 0 fingerprint .., rank 3 fingerprint ..` (2.32+)
    driver: `cudaDriverVersion 12040` (2.13+)
    rccl: lines that only RCCL prints: `HIP version`, `ROCm version`, librccl path, Rome models, MSCCL
    world size: how many ranks another program says that the job has (grammar/stated.py)
    rank host: the host of a rank by its launcher
    command: a command, its trace or a dump of the environment, with the settings that it gives
    rank device: a rank with its host, process and GPU, of the list of nccl-tests
    dmabuf: `DMA-BUF is available on GPU device 0` (2.13+), or that it is not; RCCL's words for it
    gdrcopy: `GDRCOPY enabled library 2.3 driver 2.3`
    cc: `CC Off, ..workFifoBytes 1048576`: confidential computing
    stack: `Stack size limit (unlimited) is unsafe; ..` (2.28+)

Bootstrap and the choice of the network.
    bootstrap: `Bootstrap: Using eth0:10.0.0.1<0>`, all spellings
    bootstrap timing: `Bootstrap timings total ..`
    bootstrap note: other INFO of the bootstrap
    network: `Using network IB`
    net plugin: a plugin that was loaded or named: `NET/Plugin: Loaded net plugin ..`, `Initialized ..`
    net plugin missing: `NET/Plugin: Could not find: ..`, `Failed to find ncclNetPlugin_v8 symbol`
    plugin: the same of the TUNER, PROFILER, ENV, GIN and RMA plugins, found or missing
    assigned: `Assigned NET plugin IB to comm`, `GIN/Plugin: Assigned plugin .. to comm`
    tuner: `TUNER/Plugin: Using tuner plugin ..`: a tuner that is in use
    ofi: `NET/OFI ..` of the aws-ofi-nccl plugin
    hcas: `NET/IB : Using [0]mlx5_0:1/IB ..; OOB ib0:..`
    hca: `NET/IB: [0] mlx5_0:uverbs0:1/IB provider=.. speed=.. pciPath=.. ar=1` (2.27+)
    no hca: `NET/IB : No device found.`
    ib note: other INFO of NET/IB: Data Direct, resiliency, recovery, libibverbs, merging switched off
    port speed: `NET/IB : mlx5_0:1 speed change detected: 400000 -> 100000 Mbps` (2.30+)
    gid change: `NET/IB: ncclIbAsyncThreadMain: GID table changed on mlx5_3:1` (2.31+)
    wqe latency: `NET/IB: WQE latency summary [send peer=.. dev=mlx5_0 qpn=..]: n=.. slow=.. thr=..` (2.32+)
    nvlink untold: `Unable to get RemoteDeviceType for NVLink 0, igoring.` (2.31+)
    virtual nic: `NET/IB : Made virtual device [0] name=mlx5_0+mlx5_1 ..` and `TOPO/NET : Made vNic 0`
    sockets: `NET/Socket : Using [0]eth0:10.0.0.1<0> ..`
    socket threads: `NET/Socket: Using 2 threads and 1 sockets per thread`
    socket note: retries and refusals of sockets at level INFO
    interface: speed of a network interface: `Could not get speed from ..`, `Found network interface ..`
    nic: `ncclTopoPopulateNics : Filled mlx5_0 in topo with pciPath=..` (2.24+)
    gdr hca: `NET/IB : GPU Direct RDMA Enabled for HCA 0 'mlx5_0'` and `.. Disabled .. (no module)`
    gdr pair: `GPU Direct RDMA Enabled for GPU 0 / HCA 1 (distance 4 <= 5), read 0`, all spellings; C2C pairs
    qp: `NET/IB: .. qpn 123 mtu 5 GID 3 (..)`: queue pairs that were created or connected
    pxn: `PXN Disabled as plugin is v4`
    gin: GIN and RMA: `GIN ..`, `devCommCreate: ..`, symmetric memory not supported

Settings.
    setting: `NCCL_X set by environment to V`, `set to`, `set from environment`, invalid, unused, deprecated
    config: `Comm config X set to V`, `.. reset to NCCL_X=V`; what of a configuration cannot be honoured
    matrix: `Enabled NCCL Func/Proto/Algo Matrix:` and its rows, which have no head
    ctas: limits of CTAs and channels: `NCCL_MIN_CTAS 80 is too low, ..`

The machine as NCCL found it.
    topo file: `Loading topology file ..`, `Loading unnamed topology`, topology dumped or received
    topo note: doubts about the topology: could not read, KV Convert, mixed CPUs, simple order, NVML absent
    p2p off: `P2P is disabled between connected GPUs 0 and 1. ..`
    p2p type: `Check P2P Type isAllDirectP2p 1 directMode 0 ..`
    affinity: `Setting affinity for GPU 0 to ffff`, `ncclTopoGetCpuAffinity: ..`
    search: `Search 0 : 4 channels loaded from XML graph`
    devices: `Rank 0: 8 Net devices` (2.30), `Rank 0 has 7 local Net devices (max 8).`

What a communicator uses.
    nvls: `NVLS multicast support is available on dev 0`, tuning, binding
    nvls comm: `NVLS comm 0x.. headRank 0 nHeads 8 ..`
    nvls head: `NVLS Head  0:  0  8`
    nvls tree: `NVLS Trees : ..`
    mnnvl: `MNNVL busId ..`, `MNNVL 1 cliqueId ..`, `Cross-clique P2P ..`, `LSA extended ..`
    collnet: `Collnet Chains ..`, `CollNetDirect channel ..`, `rank 0 Connected CollNet`
    connected: `Connected all rings, use ring PXN 0 GDR 1`, `Connected all trees`, NVLS tree, binomial trees
    chunk size: `P2P Chunksize set to 131072`
    thresholds: `threadThresholds 8/8/64 | 128/8/64 | 512 | 512`
    threads: `Using 256 threads, Min Comp Cap 7, Trees ..` (2.3-2.4)
    launch: `Launch mode Parallel/CGMD`
    proxy core: `[Proxy Service] Device 0 CPU core 12`
    proxy end: `[Service thread] Connection closed by localRank 1`
    connect time: `timings: rank 0 nranks 8 P2p connect done in 0.02`
    kernel: choices that name no algorithm: `AllReduce [Symmetric]: .. -> Kernel ..`, `[Copy Engine]: ..`
    no color: `Rank 3 has color with NCCL_SPLIT_NOCOLOR, ..`
    split: `bootstrapSplit: ..`, `Rank 0: Generated commHash ..`, grow, suspend, resume
    ras: RAS at level INFO
    hint: `HINT: ..` after an error of InfiniBand (2.30)
    retry: an error at level INFO that NCCL went on from: `Call to .. failed`, `.. returned .., retrying`
    sharp: the SHARP plugin's own lines
    benign: known to say nothing about a fault, and kept because people ask about it
"""
