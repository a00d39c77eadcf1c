"""HST002 from a listing of device nodes; more of what people paste of a host is in tests/outputs."""

from tests.checks.wanted import expect
from tests.evidence.filled import node_of
from topodiag.checks.host.devices import DevicesNotGiven


def test_a_folder_that_ls_does_not_find_lacks_the_nodes_of_rdma() -> None:
    text = "# ls /dev/infiniband\nls: cannot access '/dev/infiniband': No such file or directory\n"
    expect(DevicesNotGiven().judge(node_of(text)), message="*uverbs*")
