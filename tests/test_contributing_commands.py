"""CONTRIBUTING.md, the pre-commit hooks, the forge's workflow and .ci/run agree on one set of commands."""

import re

import yaml

from tests.shown import ROOT

COMMANDS = re.findall(r"```sh\n(.*?)\n```", (ROOT / "CONTRIBUTING.md").read_text(), re.DOTALL)
CI = (ROOT / ".ci" / "run").read_text()
LINTERS = [re.sub(r"\s+", " ", part.strip()) for part in COMMANDS[2].split("&&")]


def test_contributing_has_three_commands() -> None:
    assert len(COMMANDS) == 3
    assert "pip install" in COMMANDS[0]
    assert COMMANDS[1].startswith(".venv/bin/pytest")


def test_ci_runs_the_linters_of_contributing() -> None:
    assert LINTERS
    assert [linter for linter in LINTERS if linter not in CI.splitlines()] == []


def test_the_hooks_run_the_linters_of_contributing_and_need_no_network() -> None:
    repos = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    hooks = [hook for repo in repos for hook in repo["hooks"]]
    assert {repo["repo"] for repo in repos} == {"local"}
    assert {hook["language"] for hook in hooks} == {"system"}
    programs = [linter.split()[:2] for linter in LINTERS]
    entries = [hook["entry"].split() for hook in hooks]
    assert [program for program in programs if not any(entry[: len(program)] == program for entry in entries)] == []


def test_the_forge_runs_ci_on_push_and_on_pull_requests() -> None:
    # YAML 1.1 reads the key `on` as true.
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text())
    assert set(workflow[True]) == {"push", "pull_request"}
    steps = [step for job in workflow["jobs"].values() for step in job["steps"]]
    assert any(step.get("run") == ".ci/run" for step in steps)
    versions = {version for job in workflow["jobs"].values() for version in job["strategy"]["matrix"]["python"]}
    assert versions == {"3.11", "3.12", "3.13"}
