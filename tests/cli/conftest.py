"""Runs the program as users do: a process of its own, its streams captured, an environment without surprises."""

import pytest

from tests import program


@pytest.fixture
def topodiag():
    """Runs `topodiag ARGS` with a pipeline that does what `fake` says (`tests.cli.fake_program`)."""

    def run(*args, fake="clean", env=(), **kwargs):
        return program.run(*args, env={"FAKE": fake} | dict(env), entry="tests.cli.fake_program", timeout=60, **kwargs)

    return run
