"""What torch and Python say of the store at which ranks meet: no name, no port, no answer; and noise beside it."""

from tests.tables import examples
from topodiag.checks.shared.phrases import advice_by_words
from topodiag.evidence.nccl_log.grammar.job_lines import said_of

LISTEN = "The server socket has failed to"


@examples("text", "kind", "advice")
def test_a_store_without_name_port_or_answer_is_an_error_with_its_own_advice(text: str, kind: str, advice: str) -> None:
    pair = said_of(text)
    assert pair[0] == kind
    assert advice in advice_by_words(text)


@examples("text")
def test_one_family_of_addresses_or_the_port_of_a_side_service_is_none(text: str) -> None:
    assert said_of(text) is None


@examples("text")
def test_a_port_that_another_process_has_ends_the_one_that_wants_it(text: str) -> None:
    assert said_of(text) == ("ended", {"how": "port taken"})
    assert said_of(f"{LISTEN} bind to [::]:29500 (errno: 97 - Address family not supported by protocol).") == (
        "connect",
        {},
    )


NO_FAMILY = "[W socket.cpp:401] [c10d] The server socket cannot be initialized on [::]:29500 (errno: {})."


def test_an_address_family_that_the_host_lacks_is_gone_past() -> None:
    assert said_of(NO_FAMILY.format("97 - Address family not supported by protocol")) == ("note", {})
    files = said_of(NO_FAMILY.format("24 - Too many open files"))
    assert files is None or files[0] != "note"
