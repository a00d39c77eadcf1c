"""The benchmark that gives each line of NCCL's source to the log reader: what is a line, and what it fills in."""

from benchmarks.nccl_lines import Format, filled, formats, is_silent, judged, readers, reason

SOURCE = """
  WARN("NET/IB : Unable to open device %s", name);
  INFO(NCCL_INIT | NCCL_NET, "NET/IB: [%d] size %#" PRIx64 " of"
       " %zu bytes, GID %02x", i, size, n, gid);
  INFO(NCCL_ENV, "%s set by environment to %s", env, str);
  INFO(flags, message);
  TRACE(NCCL_NET, "not printed");
"""


def test_formats_are_those_of_the_calls_with_their_parts_joined() -> None:
    found = list(formats("src/x.cc", SOURCE))
    shown = [(each.place, each.level) for each in found]
    assert shown == [("src/x.cc:2", "WARN"), ("src/x.cc:3", "INFO"), ("src/x.cc:5", "INFO")]
    assert found[1].text == "NET/IB: [%d] size %#x of %zu bytes, GID %02x"


def test_each_conversion_has_a_value_as_printf_writes_it() -> None:
    assert filled("%d %5d|%-5d|%02x %s %.1f %%\n") == "3     3|3    |1f value 1.500000 %"
    assert filled("%s set by environment to %s") == "NCCL_VALUE set by environment to value"


def test_a_line_is_a_row_noise_unread_or_a_warning() -> None:
    table = {
        "%s set by environment to %s": "row",
        "Connected to proxy localRank %d -> connection %p": "noise",
        "Words that no release ever printed": "unread",
    }
    for text, expected in table.items():
        assert judged(Format("x.cc:1", "INFO", text)) == expected
    assert judged(Format("x.cc:1", "WARN", "Words that no release ever printed")) == "warning"
    assert judged(Format("x.cc:1", "WARN", "NET/MLX5: Call to mlx5dv_reg_dmabuf_mr failed with error %s")) == "warning"
    assert judged(Format("x.cc:1", "WARN", "dlvsym failed on mlx5dv_is_supported - %s version %s")) == "harmless"


def test_a_line_of_a_failure_that_no_check_reads_has_a_reason() -> None:
    assert all(f'"{kind}"' in readers() for kind in ("nvlink untold", "port speed", "mnnvl"))
    silent = Format("x.cc:1", "ATTN", "MemManager: FABRIC handle not valid for entry ptr=%p")
    assert is_silent(silent)
    assert "suspended" in reason(silent)
    assert reason(Format("x.cc:1", "ATTN", "Words that no release ever printed")) == "?"
    for text in ("NET/IB : %s:%d speed change detected: %d -> %s Mbps", "Connected all rings"):
        assert not is_silent(Format("x.cc:1", "INFO", text))
