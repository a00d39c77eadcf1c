"""Identities are found in every form, and exchanged for another node's in the same form."""

from topodiag.fleet.node_parts import Exchange, Identities, cut


def changed(exchange: Exchange, text: str) -> str:
    return exchange.joined(cut(text, "node-01"))


def test_the_host_is_an_identity_where_it_is_known() -> None:
    exchange = Exchange(Identities("node-01", ()), Identities("node-02", ()))
    assert changed(exchange, "desc: node-01 mlx5_0") == "desc: node-02 mlx5_0"


def test_an_identity_is_exchanged_in_every_form() -> None:
    exchange = Exchange(Identities("", ("a088c2030abc0eaf",)), Identities("", ("946dae0300c10d1e",)))
    assert changed(exchange, "0xa088c2030abc0eaf") == "0x946dae0300c10d1e"
    assert changed(exchange, "a088:c203:0abc:0eaf") == "946d:ae03:00c1:0d1e"
    assert changed(exchange, "0 fe80::a088:c203:abc:eaf x") == "0 fe80::946d:ae03:c1:d1e x"
    assert changed(exchange, "0000:1b:00.0 a088:c203") == "0000:1b:00.0 a088:c203"
