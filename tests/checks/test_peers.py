"""The peers of a judged one: all others, and what is so with everyone is asked once."""

from collections.abc import Sequence

from topodiag.checks.peers import of_everyone, peers_of


def test_peers_are_all_others_in_their_order() -> None:
    peers = peers_of(["a", "b", "a"])
    assert [list(peer) for peer in peers] == [["b", "a"], ["a", "a"], ["a", "b"]]
    assert [len(peer) for peer in peers] == [2, 2, 2]
    assert (peers[1][-1], list(peers[2][:1])) == ("a", ["a"])


def test_what_is_so_with_everyone_is_asked_once_for_the_whole_run() -> None:
    asked = []

    def total(numbers: Sequence[int]) -> int:
        asked.append(tuple(numbers))
        return sum(numbers)

    everyone = [1, 2, 3]
    assert [of_everyone(*pair, total) for pair in zip(everyone, peers_of(everyone), strict=True)] == [6, 6, 6]
    assert asked == [(1, 2, 3)]


def test_of_a_plain_list_the_judged_one_is_counted_in() -> None:
    assert of_everyone(1, [2, 3], sum) == 6
