"""What nothing reads has a reason to be kept: a field of the model without a reader is listed here, or goes."""

import ast
import re
from functools import cache
from pathlib import Path

from tests.shown import ROOT

PACKAGE = ROOT / "topodiag"
COMPARED = "a fact that `topodiag fleet` compares, read by its name in fleet/families.toml"
IDENTITY = "identity: joins one device or communicator of several sources"
NODE_STATE = "state of the node: for checks of limits, of lost or held-down GPUs, and of a node among its peers"
PRINTED = "NCCL's own figure or word, kept beside what is predicted: a case quotes it"
KEPT = {
    **dict.fromkeys(["bios", "memory_utilization", "power_w", "vbios"], COMPARED),
    **dict.fromkeys(["comm_id", "gids", "lid", "scheduler"], IDENTITY),
    **dict.fromkeys(["compute_mode", "distribution", "huge_pages", "max_mtu", "max_speed_mbps", "memlock_bytes",
                     "numa_balancing", "persistence", "recovery_action", "shm_bytes"], NODE_STATE),
    **dict.fromkeys(["max_gbs", "per_peer", "total_gbs"], PRINTED),
    "attempts": "how often a node was asked, in the file of a collection",
    "board": "the model of the board: told in a table of GPUs",
    "busbw_mid_gbs": "what calls reached with their waiting: for a table of NCCL's Inspector",
    "func": "what an application called to make a communicator: told in a case",
    "last_ts": "the end of a run of equal messages, for the axis of time",
    "layouts": "declared layouts of a case, beside its jobs",
    "registry": "settings of the NVIDIA driver by name, which a case quotes",
    "signature": "the entry of the catalogue that took a sentence: `topodiag explain` names it",
    "time_s": "when the kernel said it, for the axis of time",
}  # fmt: skip


@cache
def nodes(path: Path) -> list[ast.AST]:
    return list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))


@cache
def fields() -> set[str]:
    """Names of the fields of all frozen values of the model and of sweeps, but those of the table of dimensions, read
    by name."""
    return {
        item.target.id
        for path in (*(PACKAGE / "model").rglob("*.py"), PACKAGE / "sweep" / "values.py")
        for node in nodes(path)
        if isinstance(node, ast.ClassDef) and node.name != "Sizes"
        and any("dataclass" in ast.unparse(expr) for expr in node.decorator_list)
        for item in node.body
        if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name)
    }  # fmt: skip


def read() -> set[str]:
    """Names of all attributes that anything but the readers of evidence asks for. The keys of JSON documents are read
    by their names in the published schemas (report/documents/from_model.py), the counts of what the records of NCCL's
    Inspector do not hold by those in app/case/inspector.toml."""
    gaps = re.findall(r'^of = "(\w+)"', (PACKAGE / "app/case/inspector.toml").read_text(encoding="utf-8"), re.MULTILINE)
    schemas = (path.read_text(encoding="utf-8") for path in (PACKAGE / "report" / "schema").glob("*.json"))
    return (
        {*gaps}
        | {key for schema in schemas for key in re.findall(r'"(\w+)":', schema)}
        | {
            node.attr
            for path in PACKAGE.rglob("*.py")
            if PACKAGE / "evidence" not in path.parents
            for node in nodes(path)
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load)
        }
    )


def test_a_field_is_read_or_kept_for_a_reason() -> None:
    unread = fields() - read()
    assert unread - set(KEPT) == set(), (
        "fields that no check, report or emitter reads: write the check that asks for it, or say in KEPT why it stays"
    )


def test_what_is_kept_for_a_reason_is_still_there() -> None:
    assert set(KEPT) - fields() == set(), "fields that are gone: take them from the list"
