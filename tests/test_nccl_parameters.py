"""The tool that lists NCCL's variables: what it takes for one in a source file, and what it compares a table with."""

from tests.tables import texts
from tools.nccl_parameters import Variable, _differences, parameters

TEXTS = texts(__file__)
SOURCE = TEXTS["source"]


def test_parameters_are_read_with_their_defaults_and_names_in_quotes_without() -> None:
    assert dict(parameters(SOURCE)) == {
        "NCCL_IB_TIMEOUT": "20",
        "NCCL_P2P_NET_CHUNKSIZE": "(1 << 17)",
        "NCCL_MAX_CTAS": "NCCL_CONFIG_UNDEF_INT",
        "NCCL_SET_THREAD_NAME": "false",
        "NCCL_TOPO_FILE": "",
    }


def test_a_table_is_told_what_it_lacks_has_otherwise_and_has_of_no_source() -> None:
    variables = {
        "NCCL_ALGO": Variable("2.5.6", "", "", "src/tuning.cc"),
        "NCCL_NET": Variable("2.10.3", "", "", "src/init.cc"),
        "NCCL_PLUGIN_X": Variable("2.28.3", "", "", "plugins/x.c"),
        "NCCL_NEW": Variable("dev", "", "", "src/x.cc"),
        "NCCL_MORE": Variable("2.30.3", "", "", "src/x.cc"),
    }
    held = {
        "NCCL_ALGO": {"since": "2.5.6"},
        "NCCL_NET": {"since": "2.9.6"},
        "NCCL_NEW": {"since": "2.31.2"},
        "NCCL_X": {},
    }
    assert list(_differences(variables, held, ["dev"])) == [
        "NCCL_NET: 2.9.6 to , but 2.10.3 to ",
        "NCCL_NEW: on dev alone",
        "NCCL_MORE: not in the table (since 2.30.3, src/x.cc)",
        "NCCL_X: in no source",
    ]
