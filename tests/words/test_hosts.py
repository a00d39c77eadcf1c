"""Names of hosts: short, with a domain, or an address."""

import pytest

from tests.tables import examples
from topodiag.words.hosts import address_in_name, address_of, names_one_machine, short_name, short_names


@examples("host", "short")
def test_the_short_name_is_without_domain_and_number_and_an_address_stays_whole(host: str, short: str) -> None:
    assert short_name(host) == short


@pytest.mark.parametrize(
    ("text", "address"),
    [("10.1.2.3", "10.1.2.3"), ("::ffff:10.1.2.3", "10.1.2.3"), ("[fe80::1%eth0]", "fe80::1"), ("n1", ""), ("", ""),
     ("300.1.2.3", ""), ("1" * 5000, "")],
)  # fmt: skip
def test_an_address_has_one_form(text: str, address: str) -> None:
    assert address_of(text) == address


def test_ec2_writes_the_address_into_the_name() -> None:
    assert address_in_name("ip-10-24-6-50.us-east-1.compute.internal") == "10.24.6.50"
    assert address_in_name("ip-10-24-6-500") == address_in_name("gpu-10-24-6-50") == ""


def test_the_bridge_of_a_container_engine_names_no_machine() -> None:
    assert not names_one_machine("172.17.0.1")
    assert not names_one_machine("x")
    assert names_one_machine("172.16.0.1")
    assert names_one_machine("2001:db8::1")


def test_names_lose_their_domain_where_they_stay_different() -> None:
    assert short_names(["n1.a.example", "n2.a.example"]) == ["n1", "n2"]
    assert short_names(["n1.a.example", "n1.b.example"]) == ["n1.a.example", "n1.b.example"]
    assert short_names(["10.0.0.1", "10.0.0.2"]) == ["10.0.0.1", "10.0.0.2"]
