"""docs/topodiag.1 is what the help says."""

import re

import click

from tests.cli.command_tree import ALL, OF_PATHS
from tools import build_man


def test_the_man_page_is_current():
    assert build_man.PAGE.read_text(encoding="utf-8") == build_man.man_page(), "run python tools/build_man.py"


def test_the_man_page_has_every_command_and_every_option():
    page = build_man.man_page().replace("\\-", "-")
    for words, command in ALL.items():
        assert not words or f"\n.SS topodiag {' '.join(words).replace(OF_PATHS, 'PATH...')}\n" in page
        for option in command.params:
            if isinstance(option, click.Option) and not option.hidden:
                assert re.search(rf"^\.B .*{re.escape(option.opts[-1])}\b", page, re.M), option.opts


def test_the_lines_of_an_example_stay_lines():
    assert "\n.nf\nExamples\n  topodiag diagnose incident/\n" in build_man.man_page()


def test_text_is_never_taken_for_a_request():
    assert build_man.roff(".so /etc/passwd") == "\\&.so /etc/passwd"
    assert build_man.roff("'x \\fB-y") == "\\&'x \\efB\\-y"
