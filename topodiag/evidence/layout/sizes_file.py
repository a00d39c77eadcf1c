"""The sizes of a job's parallel dimensions as a file declares them, in YAML or JSON: `tp: 8`, `order: tp-cp-ep-dp-pp`.

Names are those of topodiag's options, or those of Megatron's arguments (megatron/training/arguments.py) and of torch's
device meshes.
"""

from __future__ import annotations

from collections.abc import Mapping

from topodiag.evidence.interface import Blob
from topodiag.evidence.json_values import integer
from topodiag.evidence.layout.looks import SIZE_NAMES
from topodiag.evidence.yaml_values import load_yaml, word
from topodiag.model.dimensions import ORDER
from topodiag.model.errors import InputError
from topodiag.model.layout import Layout, LayoutError

_MOST = 1 << 20
_HINT = "write tp: 8, and the like"


def read_sizes(blob: Blob) -> Layout:
    """The declared layout. Raises InputError for a size that is none, for one that is said twice, and for sizes that do
    not make the ranks that the file says."""
    document = load_yaml(blob)
    if not isinstance(document, Mapping):
        raise InputError(blob.name, "declares no sizes", hint=_HINT)
    sizes: dict[str, int] = {}
    order, world = ORDER, 0
    for key, value in document.items():
        name = SIZE_NAMES.get(str(key).lower().replace("-", "_"), "")
        if name == "order":
            order = str(value).lower()
        elif name:
            size = integer(value, 1, _MOST)
            if size is None:
                raise InputError(blob.name, f"{key} is {word(value)}", hint="sizes are 1 or more")
            if name == "world":
                world = size
            elif sizes.setdefault(name, size) != size:
                raise InputError(blob.name, f"says {name} twice, {sizes[name]} and {size}")
    if not sizes:
        raise InputError(blob.name, "declares no sizes", hint=_HINT)
    try:
        made = Layout(**sizes, order=order)
        made.names()
        return made.for_world(world) if world else made
    except LayoutError as error:
        raise InputError(blob.name, error.message, hint=error.hint) from None
