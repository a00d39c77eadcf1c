"""Words that identify nobody: those of drivers, tools, datasheets and this program. `#` stands for digits.

`--redact` replaces what is not here, so a word is added where readers need it, and never the name of a person, a site,
a host, a job or a project.
"""

HARMLESS = frozenset(
    """
#basecr# #g# #gb #ge #ghz #go #gt #kx#jy #mb #mgpu# #mhz #mib #pyxky #rv#xp #th #ubuntu# #wt#np #xl #xlarge a#a a#c a#f
a#g aarch# ab# abc abi abilities ability able abort aborted about above abs absence absent abwmgmt accelerate
accelerators accepts access accesses accessing accesstimeout accounting accounts accumulate accumulation ack
acknowledgements acpi acr across acs acsbetweenpeers acscap acsctl action actions activate activated activating active
activedefer activestate acts ad# ad#gl ada adapt adapter adapters adaptive add added adding addr address addressing adds
admin adopt adp advanced advertised advise advisory advnonfatalerr ae# aer af# affinities affinity after afternoon
afterwards again against agent aggregate aggregation ago agree agreed ahv air airflow aivres aks alarm alerts algo
algorithm alias alibaba aligned alike all allgather allgatherv alloc allocate allow allowance allowed allows allreduce
alltoall almalinux alone along already also although altra always amazon amd amd# amdgpu amdkfd among amount amp ampere
ampersand analyzing ancestor ancestors and anew annotations announcement another answer answered answering answers any
anything anyway anywhere apart api apm apollo apos appear append appendix appends apple applicable application
applications applies apr arbitrary arch architecture architectures are argument arguments argumentversionmismatch argv
arm arm# armed around arp arphrd arrive arrived arrow aside ask asked asks asm aspm asrock asrockrack assert asserted
assertion asset assign assigned assignment assignments assumed ast astray asus asustek async ata atal athub ati atom
atomic atomics atos ats attach attached attr attribute attributes attrs aug august auth authenticamd auto autobind
automatic autoneg auxiliary auxpwr avail available average avgpwr away awayprocesses aws awsome azhpc azure azurehpc b#b
b#d ba# back backslashreplace backup bad baddllp badmemory badtlp baer bailing balanced balancing bandwidth bank banks
bar# bare bars base baseboard bash basic batch bber bcm# bcm#x bd# bdcb bdee bdf be# became because become becomes been
before began begin begins behave behaviour behind being believed believes belong belongs below benefit bent ber bergamo
beside best besteffort bethtool betrays better between beyond bf# bfsort bgpu bhyve bid bif bifurcation bin bind binding
biomerge biommu bios biosirq bit biterrors bits blacklist blacklisted blackwell blank blanks blink blob block blocking
blocks bluefield bmc bmlnx bmlx bmlx# bnvidia bnxt board boards bochs body bogomips bond bond# bonded bonding bonds
bookworm bool boost boot booted booting boots bootstrap borrow both bottlerocket bound boundprocess bounds bpcieport br#
brackets brake branch brand break breaks bridge bridged bridges brief briefs bring brings broadcast broadcom broadwell
broke broken bronze brought bsclk bsxid btl buf buff buffer buffers bug build buildd builder builds built bull bullseye
bundle burstable bursts bus buses busid busiest business busmaster busses busy but bversion bwmgmt bxid bycore bynode
bypass bysocket byte byterobust bytes c#a c#b c#c c#e c#f cable cabled cableless cache calendar cali call callable
callback called caller calls came can cannot cap capabilities capability capable capacity capital capmask caps capture
captured card cardbus cards careless carried carrier carries carry carrying cartridge cascade case cases cat catalog
catalogue cause caused causes cavium cb# cbs cc# cd# ce# ceil celestica cell cells centaurhauls centos centre certain
cesta cf# cgroup cgroups chain chains change changed changes channel channel# channeln channels char character
characters chars chassis cheap check checked checks child children chip chips chipset choice choices choose chooses
chose chosen circuit cisco claim claimed class classes classify clean cleaned cleanup clear cleared clears client climb
climbs clique cliqueid clock clocks clockshelddown close closed closes closest closing cloud clouds cluster clusteruuid
cma cmd cmdline cmpltredir cmpltto cni cnp cns cnt cntr code codes coding coll collapse collect collection collections
collective collectives collector collectors collects collnet collnetchain collnetdirect colon colons colours column
columns com combinations come comes comm comma command commands commas comment commented comments common communicated
communicates communication comp compact compare compared compat compat# compatible compile complaint complete completed
completer completes completion complex components compressed compromised computation compute computedomain computer
computes computing conf confadvice confentry confidence confidential config configuration configure configured confirm
confline conflinenotread conftext congested congestion conn connect connected connection connections connectors connectx
conns conservative constraint contacts contain contained container containerd containerenv containers containment
content context contexts continue contradict contradiction contradicts control controlled controller controllers
controls conventional convert converted convict cool coolant cooled cooling cooper copied copies copper copy cor core
cores corp corporation corr correct correctable corrected correction correlation correrr corrupt corrupted corrupting
corrupts cos cost costly costlysetting costs could couldn count counted counter counters counting counts course cover
coverage covered cpp cpu cpu# cpufreq cpuid cpuidle cpuinfo cpulist cpumap cpunodebind cpupower cpus cpuset cputype cqe
crash crashes cray crc create created createimexchannel# creating credential credits cri crio critical crossbar crosses
crossing crs cscs cstate csv ctas ctime ctl ctrl ctx cube cuda cudaerror cuinit culprits cumem cumemcreate current
currentlinenumber currently customer cut cuts cxi cxi# cycle cycled cyclic d#b d#d d#e d#f da# daef daemon damaged
dangling dark dashes data dataclass dataclasses datasheet datasheets date datetime day days db# dbe dcb dcfc dcgm
dcgmhealthwatch dcgmi dcgmlib dd# ddr deactivating dead deadline deaf debian debug dec decide decided decides decimal
declared decode decoded decoration ded deec deep deeper deepspeed def default default# defaultdict defer defined defines
defusedxml defusedxmlexception defusedxmlparser degraded degradedlinks del delay delays dell delta denied dense deploy
deprecated depth deque derivation desc describe describes description design destination destroy detail details detect
detected detection determine detours dev devctl device devices devicesnotgiven devids devinfo devinit devs devsel df#
dgx dgx# dgxa# dgxb# dgxh# diag diagnostic diagnostics diagonal diags dict dictionaries dictionary did died dieedge dies
differ different differently differs digits dir direct direction directions directly directory directtrans dis disable
disabled disables discard discarded discards disconnect disconnected disintx disks display distance distances distinct
distributed distribution distributions divides djob dl#a dlactive dma dmabuf dmar dmar# dmesg dmi dmon doca docker
docker# dockerenv docs doctype document documentation documented documents does domain domains done dormant dot dots
double doubled doubles doubt down downed downgraded downs downstream downwards dpu dra draft drain drained dram
dramencryption draw driver drivernotloaded drivers drives drm drop dropped drops dsc dscp dscp#prio dtd dtds dual due
dump dup duplex duplicate during dvs dynamic e#a e#c e#d e#e eacces each earlier early ec# ecap ecc echo echoed echoes
ecn ecrc ecs ecx ed# edac edges edited edition edpp edr eeprom ef# efa efa# effa effective efz egressctrl eight einval
either el# elastic electronics element elements elementtree elif elision else elsewhere em# emerald emit emperature
empty emptydir ena enable enabled enablegpufirmware enablepcierelaxedorderingmode enablestreammemops enabling
encapsulated encode encoder encodings encountered encryption end ended endpoint endpoints ends endswith enforced engine
eno eno# eno#np# enoent enough enp enp#p#s# enp#s# enp#s#f# enp#s#f#np# enp#s#f#v# enp#s#np# ens ens# ens#f# ens#f#np#
ens#np# enter entercompliance enterprise entities entity entries entry enum enumerate enumeration env env# environ
environment envline eof eperm epoch epp epyc equal equalization equally equals err errno error errors esc#a escape etc
eth eth# ether ethernet ethtool ethtooldriver ethtoolstats etree evaluate even evenly event events every everyone
everything everywhere evice eviden evidence evt exact exactly examples exceeded except exception exceptions excerpt
excessive excessivebufferoverrunerrors exchange exchanged exclude excluded excludes exclusive exec execstart exist exit
exited expanded expandtabs expansion expect expectation expected expecting explain explained explains explicit exponent
export exported exporter express expression ext extend extended external extra exttag eyes f#b f#c f#f fa# fabric
fabriccounters fabricfaults fabricmanager fabricnotready fabricrecord fabrics facebook fact factory facts fail failed
failing fails failure fall fallback fallen falling falls false families family familyid fan fans far fargpus farther
farthest fast fastb#b faster fastest fastrak fatal fatalerr fault faulted faults faulty fbba fbpa fc# fcs fcyclic fd#
fdr fdr# fe# feac feature features feb feba fec fecs fedora feec feed fell few fewer fewernvlinks fewest ff# ffff
fffffff ffffffff ffv# fhhl fib fibre field fields fifty figure figures file files fill filled filler fills filter
filtered find findall finding findings finditer finds fine finish firewire firmware first fit fits fitted five fix fixes
flag flags flannel flap flapping flaps flat flatcar flattened flattree flint flit flits float floor flow flows flush
flushes flux fmt focal fold folded folder follow followed following follows for forbid force forced foreign forgets fork
form format formats forms forward forwarding found four foxconn fp# fraction fragment frame framebuffer frames free
freedesktop frequency fri from fromisoformat fromkeys fromtimestamp frozen frozenset fujitsu full fuller fullflush
fullmatch func function functional functionality functionnotfound functions further fuse fused future g#dn g#e ga# gain
gained gap gaps gateway gather gave gb# gbps gbs gbwmode gcc gcp gdaki gdma gdr gdr# gdrcopy gdrdma gdrdrv
gdrmodulemissing gdrtoofar geforce gen gen# general generation generations generic genoa gentoo genuineintel get getattr
getexpectedpciereplayrate getparam gets gfx gfx# gh# ghz gib gid gids giga gigabit gigabits gigabyte gin give given
gives global gloo glued gni gnome gns gnu goes going gold gom gomp gone good google gooxi got governor governors gpc
gpccs gpp gpu gpu# gpu#rail gpuanswers gpucurrent gpudirect gpudirecttcpx gpuheader gpuislost gpulost gpumax gpumemory
gpunicondifferentsockets gpunotfound gpupair gpurecovery gpus gpuspec grace grain grandchild granite granularity graph
graphics graviton grdmapcitopocheckoverride grep gres grew group groupby grouped groups grow growing grown grows growth
gsp gts guaranteed guess guessed guessedtree guesses guessing guesswork guest guests guid guide guided guids gv#gl gve
gvnic h#c h#dgo habanalabs had half halt halted halve han hand handed handle handled handlers handles hang hangs happen
happened happening happens hard hardware harm harmless has hash hat have having hbm hbm# hbm#e hca hcas hcoll hdp hdr
hdr# head header headers headless heads health healthline healthsummary healthy hears heartbeat heat heaviest held
heldclocks help helps here hewlett hex hex# hexadecimal hfi# hgx hidden hide hides hierarchy high higher highest highgpu
hint hints hip hisilicon histograms hit hive hmem hold holding holds home homeless homes hook hop hopper hops host host#
hostcheck hostengine hostfault hostfile hostid hostlimits hostname hosts hostsettings hot hour hours how howto hpc hpe
hsa hsn# hst# http https huawei huge hugepage hugepages hugepagesize hugepagesz hugetlb hundred hung hvm hwlatencies
hwloc hwp hwthread hybrid hypervisor hypervisors hyve i#e ib# ibdev#netdev ibgda iblinkinfo ibm iboe ibp ibp#p#s# ibp#s#
ibp#s#f# ibqueryerrors ibs# ibs#f# ibstat ibstatus ibta ibv ibvdevinfo ibverbs ibvwrap ice icrc identifier identities
identity idle ids ieee ieit iface ifname igfx igh ignore ignorecase ignored ignoring illegal image images imex impaired
implementer implied implies import imports impossible inactive inc include included incompatible incorrect
incorrectconfiguration indent indentation indented index indexed indices inet inet# inference inferred infiniband
infinity info information inforom ingrasys inherited init initenvfunc initial initialise initialised initialize
initialized initializing initiated inlet inline innotek inputerror ins insert inside inspector inspur install installed
instance instances instead instinct instruction insufficient insufficientresources int integer integrated integrator
integrity intel intelr intended inter interconnect interest interesting interface interfaces internal internalv#
interpreter interrupt intersection interval intmsgnum into intr intra intx inuse invalid invalidargument invalidated
invalidation invalidstate inventec invention iommu ipaddress ipc ipoib iproute# ipv# ipv#address irdma irdma# irq
irqaffinity irtcachedis irtt isalnum isascii isdecimal isdigit isdisjoint isinstance isl islice iso isolcpus isprintable
isspace issue issues item items iter iterable iterator itertools its itself ivhd# iwarp ixgbe jam jammy jan java jax job
jobid jobs join joined joins journalctl journald jpeg json judge judged judges jul jun just k#pg karpenter kbytes keep
keeping keeps kepler kept kern kernel kernelevent kernellog kernels key keys kfd kgsplogxid# kib kill killed kills kind
kinds kmd kmgtp kmgtpi kmp kmsg knem know knowing known knows kubepods kubernetes kubevirt kunpeng kvconverttoint
kvdictcpuarch kvdictpciclass kvdictpcigen kvm l#cache l#s label labels lack lacking lacks lake lambda lane lanes large
larger largest last latency later latest launch launches layer layers layout lays lazy ldom ldoms lead leads leaf leak
leap least leave leaves left legacy legend len length lenovo less lesser let lets letter letters level levels lexer lib
lib# libfabric libibverbs libnbc libpod libraries library librarynotfound librmversionmismatch license lid lies life
lifespan like limit limited limitmemlock limitnofile limits line lines link link# linkcount linkdowned linkdownedcounter
linked linkerrorrecover linkerrorrecovery linkerrorrecoverycounter linkerrors linkreading links linkup linux list listed
lists literally little live lkey ll# lmc lnkcap lnkctl# lnksta lnv lnx load loaded loader loaders loading loads
loadstate loc local localhost localid locallinkintegrityerrors location lock lockdown locked lockup lockups log logged
logical login logs lone long longer longest look looked looks loop loopback loops lose loses loss losses lossless lossy
lossyclass lossytraffic lost lostgpu lostpairs lot lovelace low lower lowerlayerdown lowers lowest lowlatency lsb lscpu
lsi lsmod lspci lstrip ltd lts ltssm lxc lxcfs m#i mabort machine machines macsec made madvise main maintenance major
majority make maker makers makes making malformed mana managed management manager managerstate manages manifest mantissa
manufacturer many map mapped mapper mapping mar margin marginal markdown marked marker marketed marks mask masked masks
master masters match matched matching mate mates math matisse matrices matrix matrixnote matrixrecord matrixrow matter
matters max maxbw maxcpus maxgpu maximum maxlen maxpayload maxreadreq maxsplit maxwell may maybe mbps mca mcdm mclk mcpu
mcx#aas md# mean meaning meaningless means meant meanwhile measure measured medium meet meets megabytes megagpu megware
mellanox mem member members membind memcpy memfree meminfo memlock memops memory memoryfaults mems memtotal memtype
memwinv mend mended mending mends mercy merely merge merged mesh meshes message messages met meta metal metric mgag#
mgmt mhz mi#x mib micro microcontroller microsecond microseconds microsoft middle mig might mii milan mild millions
milliseconds min mine minion minor minute minutes misc misconfigurations mismatch mismatched misplaced misread
misreadline miss missed missing missingcomputenic misspelt mitac mitigations mixed mlnx mlx mlx# mlx#gen mlxconfig
mlxfwmanager mlxlink mmhub mmu mnnvl mode model modelid models moderation modern modes modeset modifydevicefiles
modprobe module modules mofed moment moments mon monitor monitoring monitornvlink monitornvlink#fields monotonic month
more most mostly mount move moved moves mpi mpich mpio mpirun mrail mse msg msi mt# mtl mtu mtus much multi multicast
multifunction multigpu multiline multiple must mv# mvb mxm nak naks name named nameless names namespace napi naples
narrow narrower narrowest narrowpcielink native nc#adis nc#ads nc#as ncast# nccl ncclfile ncclsocketinit
nccltopocheckgdr nccltopogetcpuaffinity nccltopogetintercpubw nccltoponvlinkbw ncclxml nchannels nd#amsr nd#asr nd#is
nd#isr nd#isrf nd#rs ndevs ndm ndr ndr# ndv# near nearer nearest neat nec need needed needs negative negotiated
negotiation neighbour neighbouring neither neoverse nested nesting nests net net# netdev netdevrecord netdevs netir
netlink nets nettrix netvsc network networking networks netxtreme never new newer newest newline news next ngx nic nic#
nicname nicport nicportdown nicporterrors nicportslow nicrole nics nicsdiffer nicspec nil nldev nmx nnodes noacpi noaer
noats nobfsort noble nobody nobypass nocbs nocrs nodata node node# nodecheck nodedraft nodeid nodelist nodename nodenum
nodes nodesetting nofile noforce nogdr noheader nohz noise nomerge nommconf nomsi nomwait non none nonfatal nonfatalerr
nooversubscribe nop nopack nopermission nopt noqa nor norespect normal normalise nosmt nosnoop nosort nostatechange not
note notes notfound nothing notice notifications notobserved notpresent notready notsupported nouveau nov nova now
nowarnings nowhere nprocs nps# npu nspawn ntasks null num num# numa numa# numactl numaid numastat number numbered
numbering numbers numelin numelout numeric numnodes numproc numvfs nutanix nv# nv#nv#pixsys# nvb nvd nvidia nvidia#
nvidiactl nvidiasminvlink nvidiasmip#p nvidiasmiqtext nvidiasmiquery nvidiasmitable nvidiasmitopo nvidiasmixml nvl nvl#
nvlink nvlinkdisable nvlinkerror nvlinkerrors nvlinknote nvlinkrecord nvlinks nvlpw nvls nvlstree nvme nvml
nvmlclockseventreasons nvmlcomputemode nvmldevicegpurecoveryaction nvmlenablestate nvmlgpu nvmlgpufabricinfo
nvmlgpufabricstate nvmlgpup#pstatus nvmlgputopologylevel nvmlintnvlinkdevicetype nvmlnvlinkversion nvmlpair nvmlrecord
nvmlreturn nvmlsystem nvn nvreg nvrm nvs nvshmem nvsmi nvswitch nvswitch# nvswitches oam ob# object objects observe
observed occurred oci oct octal october odd odp ofed off offer offered offers offload offset offsets ofi often oke old
older oldest omp ompi once ondemand one ones onestep online only onto oob oom oos opa opcode open opened openib openibd
opening opens opensm openstack opensuse operatingsystem operation operator operstate operstates opsxp opt option
optional options opx oracle ord order ordered ordering ordinal org oriented origin origins orphan orphans ort orted osc
oserror osinitnvmapping osrelease osstate other others otherwise oui our ours out outbound outcome outcomes outermost
output outputs outside over overflow overflowerror overhead overlap overlays overload overran override overrides overrun
oversubscribe overwrite overwrites overwriting ovirt ovx own owner owners owns p#c p#d p#de p#dn p#e p#en p#p p#p# pace
paces pack package packages packard packed packet packets packing packs page pages pair pairs pairwise pairwithoutnvlink
pals pam# parallel parallels param parameter parameters params parent parerr parity parse parsed parseerror parser
parsers parsestringlist part parted partial particular parties partition partitions partner parts pascal pasid pass
passed passes passing passive passthrough past paste pasted pat path paths pathtype pattern patterns pause pauses pay
payload pays pbdma pbs pci pci# pcidevice pcie pcieaer pcieerrors pcieport pcikind pcilink pcp pcs pde peak peer
peer#peer peermem peers pegatron pending penguin pensando people per percent perf performance perfquery perhaps period
permission permissions permitted perr persistence persistenced person pex pex#xx pfc pflops pg# pgtbl phantfunc phb phy
phyad phys physaddr physfn physical phytest picked picks pid pids piece pieces pin piped pix pkey pkg place placed
placeholders places plain plainly plan plane plans platform platinum please plug plugged plugin plugs plural plx pm#a#
pma pmi pmix pml pmu pod podman point pointer pointers pointing points policy poll polling pop port port# portals#
portconfigurationtraining portconfigurationtrainning portcounters portrcvconstrainterrors portrcvdata portrcverrors
portrcvpkts portrcvremotephysicalerrors portrcvswitchrelayerrors portrecord ports portxmitconstrainterrors portxmitdata
portxmitdiscards portxmitpkts portxmitwait position posix possible possibly power poweredge powerlimit powersave
powersupersave ppc ppc# ppc#le ppn precision preempt preemptive prefer prefers prefix preload presence present preset
presumed pretty previous prices primary print printable printed prints prio prio# priorities priority priv private pro
probe probed probes probing problem problems proc process processawayfromgpu processes processing processor processors
processrecord procid proclist procps product products professional profile profiler prog program programs progress
prohibited proliant prolog prompt prop propagateresourcelimitsexcept properties property proportion proprietary
protected proto protocol prove provenance proves provider proximity proxy prte prted psb psm# pstate pty public
published pull purpose put puts pwd pwrcap pxb pxm pxn python python# pytorch qct qdr qede qedr# qemu qos qp# qp#dropped
qpi qpn quad quadro qualcomm quanta quarter queries query queryrow question queue queues quickstart quiet quorum quot
quotation quote quoted quotes quoting rack rail rail# rails raise raises ran range rank rank# ranked rankfile rankid
ranks rapids rarely ras rate rated rates rather raw ray rccl rcu rcv rcvd rdma rdma# rdmalink rdmarecord rdmastatistic
rdmaunused rdmav re# reach reached reaches reaching read readable reader readers reading readings readme reads ready
real realloc really realtime reason reasons reboot rebooted receive received receiver reckoned reckons reclaim
recognised recognises recommended record records recover recovered recoveries recovering recovers recovery recur recurs
recursionerror recv red redacted redirect redirecting redirection redirects reduce reduced reducescatter refcnt refcount
reference references refusal refusals refuse refused refusederror refuses reg regained region register registered
registers registration registry registrydwords regs regular reinstall reject relatives relaxed relay release releases
reload reloading remain remained remap remapped remapper remapping remark remedy remembers remote remotes remove removed
removeprefix removesuffix renamed reordering repair repeat repeated repeats replace replaced replacement replaces replay
replays report reported reporter reporting reports repr req reqredir request requested requester requests required
requires reregistration reseat reseating reserved reset resetclocks resetrequired resets resetting resmandebuglevel
resolution resource resources resp respect responding response rest restart restarted restarts resting restrict
restricted rests result retimer retired retirement retrain retrained retrains retrans retransmission retransmits retries
retrieve retry return returned returns rev reverse reversed revision rfind rgc rhel rhev ride rides rig right rightly
ring rings riser rising risk rkey rlw rlxdord rma rmaps rminitadapter rmlogonrc rndv rnic rnr roce roce# rocep rocep#s#
rocep#s#f# rocky rocm rocmrow rocmsmi rocr role roles rollover rom rome room root roots rotation round rounded route
route# routed routerecovery routes routeunhealthy routine routing row rows rpartition rpc rpcs rspcol rsplit rst rstrip
rtf rtx rubin rule rules run runlist running runs runtime rwnap rxd rxerr rxm rxpipe safe safer sage said same sample
sampled samples samsung sanitizer sapphire sat sata saving saw say says sb#b# sbatch sbin sbwmode sc# scaling scan
scarce scatter scheduler schedutil scheme sclk scope scopes scratch script scripts sdma sdr search seated sec secded
second secondary seconds secret section sections secure security see seen sees segment seldom self send sender senders
sending sendrecv sends sense sensor sent sentence sentences sep separators seq sequence serial series serious serr serve
served server servers serves service serviceaccount services set setdefault setenv setenvfile setpci sets setting
settings settled setup seven several severities severity sfp sge sglang shader shanghai shape shapes share shareable
shared shares sharp sheet shell shellfacts shift shifts ships shlvl shm short shortest shortgpus shortgroup should show
showallconcise showed shown shows sibling siblings sichek side sides sierra sign signal signs silent silently silver
simd simple simply since single sink sit site sits six size sizes skip skipped skipping skips skylake skypilot slave
sleep sles sli slice slot slotclk slots slow slowdown slower slowest slowgroup slowlinks slownvlinks slowpcielink slows
sltcap slug slurm slurmd slurmstepd sm# sm#a sm#f small smaller smcuda smi sminfo smmu smmu# smoothing smp snc soc sock
socket socketpollconnect socketprogress sockets socketstartconnect soft software sold some somebody something somewhere
sooner sort sorted source sources space spaced span spans spare spark sparsity speak speaks spec speccycle specification
specifications specified specs speed speeddis speeds spell spelling spellings spells spelt spi spine splash split splits
spoken sport spread spreads spx sr# sram srat src srcvalid sriov srq srun ssd ssupported stable stack staged stages
stall stalled stalls stamped stand standard stands star starship start started starting starts startswith stat state
states static statistic statistics stats status statuses statvfs stay stayed stays std step stepid stepping steps still
stood stop stopped stopping stops storage storm str strange stray strays stream strftime strict string strings strip
stripped strptime strtol stuck stump sub subject subjects subnet subnodes subordinate subpartition subsidiaries substate
subsys subsystem success successful such sudo suffers sufficient suggested sugon sum suma summaries summary sums sun
super superchip superchips supermicro supplies supply support supported supports sure surplus surprise survivors suse
suspected swap swept swiotlb switch switched switches sxid sxids sxm sxm# sym symbol symbolerror symbolerrorcounter
symbols symmetric sync synd syndrome sys syscpu sysctl sysfs sysinfiniband syslog sysnet syspci system systemctl systemd
systemd# systemnotready systems systemspec sysv tab tabbed table table# tablegpu tableline tables tabort tabs tag tags
tagstate tail tainting take taken takes talk talking talks tally target task tasknum tasks taskset tcc tclass tcp tcpx
tcpxo team team# teams technologies technology tell telling tells temp temperature ten tencent tens tensor tenth tesla
test testing tests text texts tflops tg# tgid than that the their theirs them themselves then ther there thermal these
they thing thinksystem third this thor those though thousands thread threaded threads three thresh threshold thresholds
throttle throttles throttling through throughput thu thw time timed timegm timeout timeouts times timestamp titan title
tlb tlp tls tlw tmp tnrt tns today together token tokens told tolerance tolerant tolerantly toml too took tool toolkit
tools top top# topic topics topmost topo topodiag topology topologyd torch torchelastic torchrun torn total totals
totalvfs towards tpc trace traced traces track traffic trailing train trained training trainning trains trait traits
transaction transblk transceiver transfer transfers transient transitional translate translated translates translating
translation transmit transmitter transparent transport transports traversing tray trays tree treefile trees trerr trex
trie trimmed trimming tritonserver trixie trouble troubles troubleshooting trtllm true trust trusted try trying tu#
tu#gl tue tune tuned tuner tuning tuple turin turing turn turned twenty twice twisted two tyan type types typevar
typically typing u#a# u#b uapi ubuntu ucc ucm ucode ucs uct ucx ud# udf udfff udp ufeff ufffd ufffe uffff uid ulimit
ultragpu ultraservers umad umad# umc umd unable unavailable unbounded unc unchecked uncontained uncorrect uncorrectable
uncorrected undecided undefined under underscores understood unexpected unexplained unfit unhealthy unicast unified
uniform uninitialized union uniq unit units universe unix unknown unknownsetting unless unlike unlimited unloaded unmap
unmaps unmoved unnamed unpack unplaced unplug unplugged unprivileged unquoted unreachable unread unreadable unreadline
unrecoverable unresponsive unseen unset unsigned unspecified unsteady unsupported unsupreq unsure untagged unterminated
until untold unusable unused unwired update upi uplink uplinks upper ups upstream upstreamfwd uptime usable usage usb
use usecs used useless user users userspace uses using usnic usnicudp usr usual utc utf util utilisation utility
utilization utils uuid uuids uverbs uverbs# uverbsn uvm v#s vaddr vader valid validation validator value valueerror
values var variable variables variant vaspace vbios vcn vector vectors vendor vendors ver verb verbose verbs verdict
verification verify version versions very veth veth# vfio vga vgasnoop vgpu via video view violation virbr virt virtio
virtio# virtual virtualbox virtualisation virtualization virtualpcitree visible vital vl# vl#dropped vlan vlan# vlans
vllm vmd vmlinuz vmm vmware vocabulary volatile volta votes vport vram vvv w#e wafl wait waiting waits walk want wanted
wants warm warn warning warnings warns warp was watch watchdog watches way ways wddm weak wear wed wedged weight well
went were what whatever when where wherever whether which whichever while whitepaper who whoever whole wholly whom whose
why wide widens wider widest width widths will win window wins wire wired wiring wistron with within without wiwynn word
words work worker workers works workstation world worn worse worst worth would wqe write writes written wrong wrongly
wrote x#deg xbb xbf xcc xdp xdr xe#l xef xen xeon xeonr xfusion xgmi xhcoll xid xidgroup xidinlog xids xmit xmitwait xml
xmldriver xmlfield xmlgetnode xmlgettoken xmlgetvalue xmlgpu xmlloadsub xmlrecord xmltag xorg xpmem xrc xsk xxv yalla
year years yes yesterday yet yield yields yongfeng young your zero zeros zfill zhaoxin zip zone ztsystems
""".split()  # noqa: SIM905
)
"""Words, in small letters."""

HARMLESS_WHOLE = frozenset(
    """
#-bit #-core #-way #.#ad -o a#-# a#-highgpu-#g a#-megagpu-#g a#-pcie-#gb a#-pg#-# a#-sxm# a#-sxm#-#gb a#-sxm-#gb
a#-ultragpu-#g a#x-highgpu-#g a#x-maxgpu-#g-metal active-backup amd-vi arm-smmu arm-smmu-v# as-asked auto-neg
auto-negotiated auto-negotiation aws-ofi-nccl azhpc-images azurehpc-health-checks b#-# balance-xor bluefield-# bm.gpu#.#
bm.gpu.a#-v#.# bm.gpu.b#.# bm.gpu.gb#.# bm.gpu.h#.# bm.gpu.mi#x.# bnxt.c bus-info by-text chip-to-chip compute-sanitizer
connectx-# cpu-vm cri-containerd dcgm-exporter device-to-device dgx#-# dgx-# dgx-#h dma-fq docs.nvidia.com double-bit
dvs-builder e#-# e#-c e#-cc e#-xxv e.g efa_main.c esc#a-e# exit-code expansion-rom-version fabricmanager.log
fast-bonding fault-tolerance fe-link ff.# ff.f ffv#.#.# firmware-version full-duplex g#.#xlarge g#dn.#xlarge g#dn.metal
g#e.#xlarge gdma.h gpu-reset gpudirect-tcpx gpudirect-tcpxo gpuspec.family gpuspec.name graph.xml h#-#e h#dgo-#
half-duplex host-to-device hot-add hot-plug hybrid-mesh i.e ice_devids.h ieee-#.#ad init.scope intel-iommu
iommu.passthrough iommu.strict k#pg-d# karpenter-provider-aws kubepods.slice libnccl-net-aws-ofi.so libnccl-net-ofi.so
libnccl-net.so libnccl-tuner.so libnccl.so libnccl.so.# link-down link-up low-latency lxc.payload machine.slice main.c
max-q modprobe.blacklist nccl-topo nccl.conf ndv#-# neoverse-v# netxtreme-e no-carrier no-pager nodes_config.cfg
non-fatal non-posted non-volatile not-found nv-hostengine nv_peer_mem.service nvidia-bug-report.sh nvidia-caps
nvidia-caps-imex-channels nvidia-fabricmanager nvidia-fabricmanager.service nvidia-imex nvidia-imex.log
nvidia-imex.service nvidia-modeset nvidia-nvswitch nvidia-nvswitch# nvidia-peermem nvidia-persistenced
nvidia-persistenced.service nvidia-smi nvidia-smi-q nvidia-smi-topo nvidia-smi-xml nvidia-topologyd
nvidia-topologyd.service nvidia-uvm nvidia-uvm-tools nvl#-r#-t# nvsmi_device_v#.dtd oci-hpc oci-hpc-oke
open-gpu-kernel-modules openibd.service opensm.service oracle-quickstart os-release os-state other-xid p#-b#.#xlarge
p#-bmc p#-pcie p#-pcie-#gb p#-sxm# p#-sxm#-#gb p#.#xlarge p#d.#xlarge p#de.#xlarge p#dn.#xlarge p#e-gb# p#e-gb#.#xlarge
p#e.#xlarge p#en.#xlarge p#p-r pass-through passthrough-mode pci.ids pcie-# pcie-#gb peer-to-peer power-cycle
pre-emptive prog-if rccl-tests rd.driver.blacklist rdma-# re-enabled re-train read-only red-hat reset-rma restart-reset
rocm-smi root-port sec-latency second-generation short-monotonic single-bit single-superchip smmu#.#x# sub-engine
supports-eeprom-access supports-priv-flags supports-register-dump supports-statistics supports-test sys-#ge-tnrt sys-cpu
sys-infiniband sys-net sys-pci system.slice tensor-core topo.cc topo.h topo.xml torch.acceleratorerror
torch.cuda.outofmemoryerror torch.distributed.distbackenderror torch.distributed.disterror
torch.distributed.distnetworkerror torch.distributed.diststoreerror torch.outofmemoryerror tuning.cc user.slice v#-#
v#-fhhl-#gb v#-pcie v#-pcie-#gb v#-sxm# v#-sxm#-#gb v#s-pcie-#gb virtio-net virtualtopology.xml vm-exit
vmlinuz-#.#.#-#-azure vmlinuz-#.#.#-#-generic vmlinuz-#.#.#-#-nvidia vmlinuz-#.#.#-#-nvidia-#k
vmlinuz-#.#.#-#.#.#.el#_#.x#_# vs. w#e-sage write-only x#-# x#deg-oa xe-# xid-errors
""".split()  # noqa: SIM905
)
"""Words that dots or dashes join: harmless together, while a host may be called by the same parts."""
