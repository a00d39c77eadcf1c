"""Redaction: what identifies is gone, what means something stays, and the same value has the same stand-in."""

import dataclasses
import enum
import ipaddress
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tables import examples
from topodiag.evidence.intake.bundle import from_memory
from topodiag.evidence.intake.reader import read_node
from topodiag.model.provenance import Fact, Origin
from topodiag_probes import secrets
from topodiag_probes.bundle import Bundle
from topodiag_probes.names import expand
from topodiag_probes.redact import KEY_VARIABLE, Redactor, read_key
from topodiag_probes.secrets import GONE, without_secrets
from topodiag_probes.tokens import Tokens

KEY = b"a key of the site"
NODES = Path(__file__).parents[2] / "fixtures" / "nodes"


def _redacted(text: str) -> str:
    return Redactor(KEY).text(text)


def _bundle(host: str = "gpu-001", **files: str) -> Bundle:
    return Bundle(
        {"schema": "1.0", "host": host, "time": "2026-11-21T02:14:09Z", "redacted": False, "items": []},
        {
            name.replace("__", "/").replace("_tree", ".tree").replace("_txt", ".txt"): text.encode()
            for name, text in files.items()
        },
    )


@examples("text")
def test_what_identifies_nobody_is_not_touched(text: str):
    assert _redacted(text) == text


@examples("text", "shape")
def test_what_identifies_is_replaced_and_keeps_its_shape(text: str, shape: str):
    redacted = _redacted(text)
    assert redacted != text
    assert re.fullmatch(shape, redacted)


def test_one_guid_in_all_its_spellings_is_one_guid():
    text = (
        "node_guid a088:c203:0055:1234\nNode GUID: 0xa088c20300551234\nfe80:0000:0000:0000:a088:c203:0055:1234\n"
        "80:00:00:48:fe:80:00:00:00:00:00:00:a0:88:c2:03:00:55:12:34\n"
    )
    lines = _redacted(text).split("\n")
    digits = [re.sub("[^0-9a-f]", "", line.lower())[-16:] for line in lines[:4]]
    assert len(set(digits)) == 1
    assert digits[0] != "a088c20300551234"


def test_a_guid_made_of_a_mac_address_follows_its_stand_in():
    mac, eui, nvidia = _redacted("a0:88:c2:55:12:34 fe80::a288:c2ff:fe55:1234 a088:c203:0055:1234").split()
    octets = mac.split(":")
    assert nvidia.replace(":", "") == "".join([*octets[:3], "0300", *octets[3:]])
    assert ipaddress.IPv6Address(eui).packed[8:] == bytes.fromhex(
        f"{int(octets[0], 16) ^ 2:02x}{octets[1]}{octets[2]}fffe{octets[3]}{octets[4]}{octets[5]}"
    )


def test_host_names_go_wherever_they_stand():
    bundle = _bundle(
        "gpu-001.cluster.example",
        trees__settings_tree="= environ\tSLURM_JOB_NODELIST=gpu-[001-002],login9z\n= environ\tMASTER_ADDR=gpu-002\n",
        files__imex_config_txt="# nodes\nrack1-a\n10.0.0.7\n",
        commands__journal_txt="[    1.0] gpu-001 kernel: NVRM: loading\n",
        commands__ibstat_txt="rack1-a gpu-001 gpu-0010 my-gpu-001 gpu-001-ib0 gpu-001.log gpu-001.cluster.example",
    )
    bundle.files["files/imex-config.txt"] = bundle.files.pop("files/imex_config.txt")
    redacted = Redactor(KEY).bundle(bundle)
    tokens = Tokens(KEY)
    one, two = tokens.host("gpu-001"), tokens.host("gpu-002")
    assert redacted.manifest["host"] == tokens.host("gpu-001.cluster.example")
    assert redacted.manifest["host"].startswith(one + ".")
    assert redacted.manifest["redacted"] is True
    settings_tree = redacted.files["trees/settings.tree"].decode()
    assert f"SLURM_JOB_NODELIST={one},{two},{tokens.host('login9z')}\n" in settings_tree
    assert f"MASTER_ADDR={two}\n" in settings_tree
    assert redacted.files["commands/journal.txt"].decode().startswith(f"[    1.0] {one} kernel:")
    assert redacted.files["commands/ibstat.txt"].decode() == (
        f"{tokens.host('rack1-a')} {one} {tokens.host('gpu-0010')} {tokens.host('my-gpu-001')} {one}-ib0 {one}.log"
        f" {redacted.manifest['host']}"
    )
    assert b"10.0.0.7" not in redacted.files["files/imex-config.txt"]


def test_a_host_called_like_a_thing_is_replaced_where_only_a_host_can_stand():
    bundle = _bundle(
        "hopper",
        commands__q_txt="<product_architecture>hopper</product_architecture>",
        commands__journal_txt="[    1.0] hopper kernel: NVRM: hopper\n",
        trees__settings_tree="= environ\tHOSTNAME=hopper\n",
    )
    redacted = Redactor(KEY).bundle(bundle)
    token = Tokens(KEY).host("hopper")
    assert redacted.manifest["host"] == token
    assert redacted.files["commands/q.txt"] == b"<product_architecture>hopper</product_architecture>"
    assert redacted.files["commands/journal.txt"].decode() == f"[    1.0] {token} kernel: NVRM: hopper\n"
    assert redacted.files["trees/settings.tree"].decode() == f"= environ\tHOSTNAME={token}\n"


def test_routes_keep_their_default_and_their_masks():
    line = "= proc/net/route\teth0\t00000000\t0100000A\t0003\t0\t0\t100\t00000000\t0\t0\t0"
    fields = _redacted(line).split("\t")
    assert fields[2] == "00000000"
    assert fields[3] != "0100000A"
    assert fields[3].endswith("0A")
    network = "= proc/net/route\teth0\t0002010A\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0"
    fields = _redacted(network).split("\t")
    assert re.fullmatch("00[0-9A-F]{4}0A", fields[2])
    assert fields[8] == "00FFFFFF"


def test_an_address_stays_in_the_network_of_its_route():
    line = "= proc/net/route\teth0\t0006180A\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0"
    network = bytes.fromhex(_redacted(line).split("\t")[2])[::-1]
    address = _redacted("= proc/net/fib_trie\t|-- 10.24.6.50 /32 host LOCAL").split()[3]
    assert address != "10.24.6.50"
    assert bytes(int(part) for part in address.split("."))[:3] == network[:3]
    six = _redacted("= proc/net/if_inet6\tfd97135900070000a28800ffc2771359 02 40 00 82     eth0").split("\t")[1]
    assert not six.startswith("fd97135900070000a28800ffc2771359")


def test_the_serial_number_of_a_configuration_space_goes_with_its_mac_address():
    data = bytearray(4096)
    data[0x100:0x104] = (0x0001 | 1 << 16 | 0x150 << 20).to_bytes(4, "little")
    data[0x150:0x154] = (0x0003 | 1 << 16).to_bytes(4, "little")
    data[0x154:0x15C] = bytes.fromhex("b8cef6fffe123456")[::-1]
    line = f"x sys/bus/pci/devices/0000:18:00.0/config\t{data.hex()}\n"
    redacted = bytes.fromhex(_redacted(line).split("\t")[1])
    assert redacted[0x154:0x15C] != data[0x154:0x15C]
    assert redacted[:0x154] == data[:0x154]
    mac = _redacted("bace.. ba:ce:f6:12:34:56").split()[1].split(":")
    assert redacted[0x154:0x15C][::-1].hex()[6:] == "fffe" + "".join(mac[3:]) or redacted[0x15B] != 0xB8


def test_addresses_of_one_network_stay_in_one_network():
    first, second, other = _redacted("10.1.2.3 10.1.2.4 10.1.3.3").split()
    assert first.rsplit(".", 1)[0] == second.rsplit(".", 1)[0]
    assert first != second
    assert other.rsplit(".", 1)[0] != first.rsplit(".", 1)[0]


def test_one_key_gives_one_stand_in_on_every_host_and_another_key_another():
    text = "a088:c203:0055:1234 10.1.2.3 a0:88:c2:55:12:34"
    assert Redactor(KEY).text(text) == Redactor(KEY).text(text)
    assert Redactor(b"another").text(text) != Redactor(KEY).text(text)
    assert Redactor().text(text) != Redactor().text(text)


def test_a_cloud_is_still_known_by_its_asset_tag():
    line = "= sys/class/dmi/id/chassis_asset_tag\t%s\n"
    assert _redacted(line % "7783-7084-3265-9085-8269-3286-77") == line % "7783-7084-3265-9085-8269-3286-77"
    assert _redacted(line % "Amazon EC2") == line % "Amazon EC2"
    assert re.fullmatch(line % "[A-Z]{3}-[0-9]{5}", _redacted(line % "INV-00417"))


@examples("text", "hosts")
def test_lists_of_hosts_in_brackets(text: str, hosts: list[str] | None):
    assert expand(text) == hosts


def test_the_key_comes_from_a_file_a_variable_or_nowhere(tmp_path: Path):
    (tmp_path / "key").write_bytes(b"secret\n")
    (tmp_path / "empty").write_bytes(b"\n")
    assert read_key(str(tmp_path / "key"), {}) == b"secret"
    assert read_key("env:SITE", {"SITE": "secret"}) == b"secret"
    assert read_key(None, {KEY_VARIABLE: "secret"}) == b"secret"
    assert read_key(None, {}) is None
    for wrong in (str(tmp_path / "empty"), "env:NOTHING"):
        with pytest.raises(ValueError, match="no key"):
            read_key(wrong, {})


@given(st.text(alphabet="0123456789abcdefABCDEF:.-x \tn\\gu=", max_size=80))
def test_any_text_is_redacted_without_an_error_and_keeps_its_lines(text: str):
    redacted = _redacted(text)
    assert redacted.count("\n") == text.count("\n")
    assert _redacted(text) == redacted


@given(st.integers(0, 2**64 - 1))
def test_redaction_of_a_guid_is_the_same_shape_again_and_again(value: int):
    quads = ":".join(f"{value:016x}"[at : at + 4] for at in (0, 4, 8, 12))
    text = f"guid 0x{value:016x} {quads}"
    once = _redacted(text)
    again = _redacted(once)
    for name in (once, again):
        match = re.fullmatch(r"guid 0x([0-9a-f]{16}) ((?:[0-9a-f]{4}:){3}[0-9a-f]{4})", name)
        assert match is not None
        if not quads.startswith("fe80:0"):
            assert match[1] == match[2].replace(":", "")


@given(st.ip_addresses(v=4))
def test_redaction_of_an_address_is_an_address_of_its_kind(address: ipaddress.IPv4Address):
    fresh = ipaddress.IPv4Address(Tokens(KEY).ipv4(address.packed))
    assert fresh.packed[0] == address.packed[0]
    assert fresh.is_loopback == address.is_loopback
    if address.is_private:
        assert fresh.packed[0] in (0, 10, 100, 127, 169, 172, 192, 198, 203) or fresh.packed[0] >= 224


def plain(value: Any) -> Any:
    """A node as plain values, without where each was read, and by which entry of the catalogue."""
    if isinstance(value, Origin):
        return None
    if isinstance(value, Fact):  # a version stands right behind its name
        return plain(value.value) if value.known else value.why
    if isinstance(value, enum.Enum):
        return value.name
    if dataclasses.is_dataclass(value):
        return {
            each.name: plain(getattr(value, each.name))
            for each in dataclasses.fields(value)
            if each.name != "signature"
        }
    if isinstance(value, Mapping):
        return {str(plain(key)): plain(each) for key, each in value.items()}
    if isinstance(value, (set, frozenset)):
        return sorted(plain(each) for each in value)
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    return value


@pytest.mark.parametrize("name", ["dgx-h100-nic-down-and-half-rate", "l40s-pcie-acs-on", "gb200-tray", "vm-flat-pci"])
def test_a_redacted_node_is_the_node_with_its_names_replaced(name: str):
    folder = NODES / name
    manifest = json.loads((folder / "manifest.json").read_text())
    paths = [item["file"] for item in manifest["items"] if item.get("file") and (folder / item["file"]).is_file()]
    files = {path: (folder / path).read_bytes() for path in paths}
    redactor = Redactor(KEY)
    redacted = redactor.bundle(Bundle(manifest, files))
    assert redacted.files.keys() == files.keys()
    before = plain(read_node(from_memory("x", manifest, files)).node)
    after = plain(read_node(from_memory("x", redacted.manifest, redacted.files)).node)
    assert json.loads(redactor.text(json.dumps(before))) == after
    assert before != after


def test_a_word_that_is_not_known_to_be_harmless_has_one_token_in_all_items():
    bundle = _bundle(
        "gpu-001",
        commands__dmesg_txt="[ 1.0] mlx5_core: owner alice of nova7.site.example\n",
        trees__settings_tree="= environ\tNCCL_DEBUG_FILE=/home/alice/log\n= etc/nccl.conf\t# (left out)\n",
        commands__ibstat_txt="CA 'mlx5_0' alice nova7.site.example a088c2551234\n",
    )
    texts = [data.decode() for data in Redactor(KEY).bundle(bundle).files.values()]
    tokens = Tokens(KEY)
    for text in texts:
        assert tokens.word("alice") in text
        assert "alice" not in text
    assert sum(tokens.host("nova7.site.example") in text for text in texts) == 2
    assert not any("a088c2551234" in text or "nova7" in text for text in texts)


@examples("text", "kept")
def test_whom_and_whose_is_replaced_even_where_it_is_a_word_like_any_other(text: str, kept: str):
    shown = _redacted(text)
    assert shown.startswith(kept)
    assert shown != text
    assert re.search("(?:name|host)-[0-9a-f]{10}", shown) or "serial" in shown


def test_the_addresses_in_slurms_topology_keep_their_switches():
    lines = [f"= environ\tSLURM_TOPOLOGY_ADDR=spine1.leaf2.gpu00{number}\n" for number in (1, 2)]
    first, second = (_redacted(line).strip().rpartition("=")[2].split(".") for line in lines)
    assert first[:2] == second[:2]
    assert first[2] == Tokens(KEY).host("gpu001") != second[2]


@pytest.mark.parametrize("name", ["alice", "gpu-a", "storage.cluster", "alice@corp", "müller", "r12u30n4", "br-alice"])
def test_names_are_not_taken_for_harmless_words(name: str):
    assert _redacted(f"link {name} up") != f"link {name} up"


# --- Secrets in any text: what is taken for one, and what is not


MARK = "hunter2"


@examples("text")
def test_what_is_named_a_secret_is_gone(text: str):
    assert MARK not in without_secrets(text)
    assert MARK not in without_secrets(f"gpu-07 10.0.0.1\n{text}\n/etc/passwd")


@examples("secret")
def test_a_key_is_known_by_its_form(secret: str):
    shown = without_secrets(f"mlx5_core: note {secret} end")
    assert secret.split("\n", maxsplit=1)[0] not in shown
    assert GONE in shown
    assert shown.startswith("mlx5_core: note ")
    assert shown.endswith(" end")


@pytest.mark.parametrize("folder", sorted(path.name for path in NODES.iterdir()))
def test_in_the_evidence_of_machines_nothing_is_taken_for_a_secret(folder: str):
    for path in sorted((NODES / folder).rglob("*.*")):
        text = path.read_text(encoding="utf-8", errors="replace")
        assert without_secrets(text) == text, path


@examples("text")
def test_what_is_no_secret_stays(text: str):
    assert without_secrets(text) == text


def test_many_suspect_lines_cost_a_bounded_time_and_are_left_out(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(secrets, "SEARCHED", 1000)
    text = "token=hunter2 and more words\n" * 400
    shown = without_secrets(text).split("\n")
    assert shown[0] == f"token={GONE} and more words"
    assert shown[-2] == GONE
    assert len(shown) == 401


@given(st.text(alphabet="passwordtken=:\"' \nAK-_/$.eyJ<>01aB", max_size=120))
def test_any_text_keeps_its_lines_and_is_clean_at_the_second_look(text: str):
    once = without_secrets(text)
    assert once.count("\n") == text.count("\n")
    assert without_secrets(once) == once


def test_of_a_key_that_a_login_of_wandb_names_nothing_stays():
    """Forty digits alone are the name of a commit as well."""
    key = "0123456789abcdef" * 2 + "01234567"
    assert without_secrets(f"commit {key}") == f"commit {key}"
    assert without_secrets(f"wandb login {key}") == f"wandb login {GONE}"
    assert key not in without_secrets(f"wandb: Appending key for api.wandb.ai to your netrc file: {key}")
