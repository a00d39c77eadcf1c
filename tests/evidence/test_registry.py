"""Every source of the registry is whole, and says what it speaks of."""

import pytest

from topodiag.evidence import registry
from topodiag.model.provenance import Topic


@pytest.mark.parametrize("kind", registry.SOURCES)
def test_a_source_says_what_it_speaks_of(kind: str) -> None:
    source = registry.source(kind)
    assert source.speaks_of
    assert all(isinstance(topic, Topic) for topic in source.speaks_of)


def test_some_source_speaks_of_each_topic() -> None:
    sources = [source for kind in registry.SOURCES if (source := registry.source(kind)) is not None]
    assert set().union(*(source.speaks_of for source in sources)) == set(Topic)
