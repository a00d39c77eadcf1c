"""Machines as rows of a table tell them: a healthy one by the name of its builder, and what is different about it."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from enum import Enum
from typing import Any

from tests.checks import networks, nodes
from topodiag.model.devices import PciDevice
from topodiag.model.node import Node
from topodiag.model.provenance import Fact, Topic

Built = str | list[Any]
"""A builder of `nodes`, `networks` or the tests' own by its name, with its arguments if there are any."""

_STEPS: dict[str, Callable[..., Node]] = {
    "bare_matrix": nodes.bare_matrix, "between_gpus": nodes.between_gpus, "to_nics": nodes.to_nics,
    "dual_port": lambda node, port: networks.dual_port(node, {name: nodes.read(value) for name, value in port.items()}),
}  # fmt: skip


def machine(built: Built, changes: Mapping[str, Any] | None = None, **own: Callable[..., Node]) -> Node:
    """The machine with its changes."""
    name, *arguments = [built] if isinstance(built, str) else built
    build = own.get(name) or getattr(networks, name, None) or getattr(nodes, name)
    return bent(build(*arguments), changes or {})


def bent(value: Any, changes: Mapping[str, Any]) -> Any:
    """The value with parts changed, one after the other, each by its path: `gpus/3/fabric/state`. Fields and keys stand
    there by their names, items of a tuple by their numbers (`3`, `0-3`, `all`). A step of `_STEPS` is called with the
    arguments that the row gives.

    A number in the place of a tuple keeps so many of its items. Facts are read, `{why = ..}` is one that was not, with
    `{value = .., source = ..}` the row says where; "null" is None, and `{}` an empty table.
    """
    for path, change in changes.items():
        name, slash, rest = path.partition("/")
        change = {rest: change} if slash else change
        if isinstance(value, Node) and name in _STEPS:
            value = _STEPS[name](value, *change)
        elif isinstance(value, Node) and name == "pci" and slash:
            key, slash, rest = rest.partition("/")
            change = next(iter(change.values())) if not slash else {rest: next(iter(change.values()))}
            functions = {key: _entry(value.pci, key, change) for key in _functions(value, key)}
            value = replace(value, pci={**value.pci, **functions})
        elif isinstance(value, tuple):
            chosen = _numbers(name, len(value))
            value = tuple(_changed(item, change) if at in chosen else item for at, item in enumerate(value))
        elif isinstance(value, dict):
            value = {**value, **{key: _entry(value, key, change) for key in _keys(name, value)}}
        else:
            value = replace(value, **{name: _changed(getattr(value, name), change)})
    return value


def _numbers(name: str, count: int) -> range:
    if name == "all":
        return range(count)
    first, _, last = name.partition("-")
    assert int(last or first) < count, f"{name} of {count}"
    return range(int(first), int(last or first) + 1)


def _functions(node: Node, name: str) -> list[str]:
    """Functions: one by its bus id, `all`, those of `GPU3`, `GPU0-3` or `mlx5_1`, and the one `above` such a one."""
    *above, label = name.split(" ")
    devices = node.gpus if label.startswith("GPU") else node.nics if label.startswith("mlx5_") else ()
    numbers = _numbers(label.removeprefix("GPU").removeprefix("mlx5_"), len(devices)) if devices else ()
    keys = [str(devices[number].bus_id) for number in numbers] or (list(node.pci) if label == "all" else [label])
    for _ in above:
        keys = [str(node.pci[key].parent) for key in keys]
    return keys


def _keys(name: str, table: Mapping[Any, Any]) -> list[Any]:
    """Keys of a table: one, `all`, and of a table of pairs `GPU0 GPU1` or with `GPU0 *` those that hold one of them."""
    if name == "all":
        return list(table)
    first, space, second = name.partition(" ")
    if second == "*":
        return [pair for pair in table if first in pair]
    return [(first, second) if space else name]


def _entry(table: Mapping[Any, Any], key: Any, change: Any) -> Any:
    """An entry of a table, changed or new: a counter is its name with the arguments of `networks.counter`."""
    if isinstance(change, list):
        return networks.counter(key, *(None if number == "null" else number for number in change))
    kind = type(next(iter(table.values()), None))
    return _changed(table.get(key, PciDevice(key) if kind is PciDevice else Fact()), change)


def _changed(value: Any, change: Any) -> Any:
    if isinstance(value, Fact):
        return _fact(change)
    if isinstance(change, dict):
        return bent(value, change) if change else {}
    if isinstance(value, frozenset):
        return frozenset(Topic[name] for name in change)
    if isinstance(value, tuple) and isinstance(change, int):
        assert change < len(value), f"{change} of {len(value)}"
        return value[:change]
    if isinstance(value, Enum):
        return type(value)[change]
    if isinstance(change, list):
        return tuple(change)
    return None if change == "null" else change


def _fact(change: Any) -> Fact[Any]:
    if change == "null":
        return Fact()
    if isinstance(change, dict):
        return Fact(why=change["why"]) if "why" in change else nodes.read(**change)
    return nodes.read(tuple(change) if isinstance(change, list) else change)
