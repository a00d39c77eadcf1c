"""`py-spy dump`: the main thread of each process, and which rank it is."""

from tests.tables import texts
from topodiag.evidence.intake.kind_of_file import kind_of_file
from topodiag.evidence.kinds import Kind
from topodiag.evidence.live.stacks import read_stacks

TEXTS = texts(__file__)
DUMP = TEXTS["dump"]


def test_the_main_thread_of_each_process_is_read_with_its_rank() -> None:
    text = "".join(f"== rank {rank} ==\n{DUMP.format(pid=5121 + rank, command='python train.py')}\n" for rank in (0, 7))
    stacks = read_stacks(text, "stacks.txt")
    assert [(stack.pid, stack.rank, stack.who) for stack in stacks] == [(5121, 0, "rank 0"), (5128, 7, "rank 7")]
    assert [str(frame) for frame in stacks[0].frames] == [
        "wait (threading.py)", "get (queue.py)", "__next__ (fairseq/data/iterators.py)",
    ]  # fmt: skip
    assert (stacks[0].origin and stacks[0].origin.line) == 5


def test_a_file_or_the_title_of_a_process_names_who_it_is() -> None:
    assert [stack.who for stack in read_stacks(DUMP.format(pid=9, command="python"), "out/rank3.pyspy.txt")] == [
        "rank 3"
    ]
    titled = DUMP.format(pid=118, command="VLLM::Worker_TP1")
    assert [stack.who for stack in read_stacks(titled, "dump.txt")] == ["TP1"]
    assert [stack.who for stack in read_stacks(DUMP.format(pid=9, command="python"), "dump.txt")] == ["process 9"]


def test_a_dump_is_known_by_the_heads_of_its_threads() -> None:
    assert Kind.STACKS in kind_of_file(DUMP.format(pid=9, command="python").encode()).kinds
    assert Kind.STACKS not in kind_of_file(b"Thread 1 finished (active users: 3)\nProcess 9: done\n").kinds
