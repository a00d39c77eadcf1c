"""A host name that leads to the host itself counts where a meeting failed, and nowhere else."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pasted import loud

HOSTS = "user@node-a:~$ cat /etc/hosts\n127.0.0.1 localhost\n127.0.1.1 node-a\n"
GETENT = 'user@node-a:~$ getent ahostsv4 "$(hostname)"\n127.0.1.1       STREAM node-a\n'
NUMBER = "user@node-a:~$ hostname -i\n127.0.1.1\n"
PYTHON = ">>> socket.gethostbyname(socket.gethostname())\n'127.0.1.1'\n"
FAILED = "TimeoutError: timed out waiting for host mesh at tcp://192.0.2.10:26600\n"
REFUSED = "worker 1: could not join the scheduler at 192.0.2.10:8786: Connection refused\n"


@pytest.mark.parametrize(
    "shown", [HOSTS, GETENT, NUMBER, PYTHON, "$ hostname\nnode-a\n127.0.1.1\tnode-a.site node-a\n"]
)
@pytest.mark.parametrize("failed", [FAILED, REFUSED])
def test_a_name_that_leads_to_itself_is_told_beside_a_meeting_that_failed(
    tmp_path: Path, shown: str, failed: str
) -> None:
    assert "NET002" in loud(tmp_path, shown + failed)


@pytest.mark.parametrize(
    "text",
    [
        HOSTS,
        GETENT + "user@node-a:~$ python attach.py\nattached to tcp://192.0.2.10:26600\n",
        HOSTS + "nvidia-smi timed out after 30 s\n",
        "user@node-a:~$ cat /etc/hosts\n127.0.0.1 localhost\n192.0.2.10 node-a\n" + FAILED,
        "user@node-a:~$ cat /etc/hosts\n127.0.0.1 localhost localhost.localdomain\n" + FAILED,
        "user@node-a:~$ getent hosts other-b\n127.0.1.1       other-b\n" + FAILED,
    ],
)
def test_a_line_that_most_hosts_have_says_nothing_by_itself(tmp_path: Path, text: str) -> None:
    assert "NET002" not in loud(tmp_path, text)
