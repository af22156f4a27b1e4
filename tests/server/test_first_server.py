"""From installation to remote answers: the commands of the page, run, and those of the README."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from tests.test_docs_examples import commands, run_python, same
from tools.fences import fences

PAGE = Path(__file__).parents[2] / "docs" / "tutorial" / "first-server.md"
SECONDS = 240.0  # after which something is wrong; nothing is timed
PORT = "8000"
FIRST = ["install", "create", "token", "serve"]
ASKED = ["score", "mean", "compare", "gate", "ask"]


def console() -> list[tuple[str, str]]:
    """Every command of the page in its order, and what is shown below it."""
    blocks = [f for f in fences(PAGE.read_text("utf-8")) if f.language == "console"]
    return [pair for fence in blocks for pair in commands(fence.text)]


def free_port() -> str:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return str(found.getsockname()[1])


class Shell:
    """Runs what the page says, on a free port, in an empty folder."""

    def __init__(self, folder: Path) -> None:
        self._folder, self.port = folder, free_port()
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        dumb = {"COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb"}
        self._environment = {**os.environ, **dumb, "PATH": path}

    def start(self, command: str) -> subprocess.Popen[str]:
        # `exec`: signals are for the command, not for a shell around it.
        command = command.replace(PORT, self.port)
        first = "" if re.match(r"\w+=", command) else "exec "
        return subprocess.Popen(
            ["bash", "-c", first + command],
            cwd=self._folder,
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, command: str) -> str:
        with self.start(command) as process:
            printed, wrong = process.communicate(timeout=SECONDS)
        assert process.returncode == 0, f"{command}\n{printed}{wrong}"
        return printed.replace(self.port, PORT)


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shell:
    monkeypatch.chdir(tmp_path)
    return Shell(tmp_path)


def healthy(port: str) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5) as reply:
            return bool(json.load(reply) == {"status": "ok"})
    except (urllib.error.URLError, ConnectionError):
        return False


def test_the_commands_of_the_page_lead_to_remote_answers(shell: Shell) -> None:
    names: dict[str, object] = {"__name__": "__main__"}
    for made in [f for f in fences(PAGE.read_text("utf-8")) if f.info == "python"]:
        run_python(made, names, PAGE)
    _, create, token, serve, *asks, curl = console()  # the environment has what `pip` installs
    for command, shown in (create, token):
        assert same(shown, shell.run(command)), command
    with shell.start(serve[0]) as server:
        try:
            assert server.stdout is not None
            assert same(serve[1], server.stdout.readline().replace(shell.port, PORT))
            deadline = time.monotonic() + SECONDS
            while not healthy(shell.port):
                assert server.poll() is None
                assert time.monotonic() < deadline
                time.sleep(0.1)
            for command, shown in [*asks, *([curl] if shutil.which("curl") else [])]:
                printed = shell.run(command)
                assert same(shown, printed, drawn=True), f"{command}\n{printed}"
        finally:
            server.send_signal(signal.SIGINT)
            _, log = server.communicate(timeout=SECONDS)
    lines = [json.loads(line) for line in log.splitlines()]
    asked = [line for line in lines if line["event"] == "request" and "token" in line]
    assert {line["status"] for line in asked} == {200}
    assert "minutes" not in log  # neither questions nor answers


def test_the_page_has_the_commands_of_the_readme() -> None:
    page = [command for command, _ in console()]
    first, asks = page[: len(FIRST)], page[len(FIRST) : -1]
    assert [each.split()[1] for each in first] == FIRST
    assert [each.split("holdfast ")[1].split()[0] for each in asks] == ASKED
    assert page[-1].startswith("curl ")
    blocks = fences((PAGE.parents[2] / "README.md").read_text("utf-8"))
    (readme,) = [f.text for f in blocks if f.language == "console" and "holdfast serve" in f.text]
    shown = [command for command, _ in commands(readme)]
    assert [each for each in shown if each not in page] == []
    assert len(shown) == len(FIRST) + 2
    headings = re.findall(r"^## (\d)\. ", PAGE.read_text("utf-8"), re.MULTILINE)
    assert headings == ["1", "2", "3", "4", "5"]
