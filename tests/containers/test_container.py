"""The image: built by ``Containerfile`` on a new base image, and run as its user."""

import json
import os
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import pytest
import requests

from payment_sandbox.client.client import SandboxClient
from payment_sandbox.client.triggers import trigger
from tests.support.commands import run_program
from tests.support.documentation import ROOT
from tests.support.ports import free_port
from tests.support.servers import make_server
from tests.support.tools import require, unavailable

BASE = "localhost/python-base"
IMAGE = "payment-sandbox"
HOST_PATHS = ("/etc/pip.conf", "/etc/ssl/certs")  # so that pip in the build has the settings of the host
HEALTH_CHECK: list[str] = json.loads(
    re.search(r"^HEALTHCHECK .*\\\n +CMD (.*)", (ROOT / "Containerfile").read_text(), re.MULTILINE)[1]  # type: ignore[index]
)
pytestmark = pytest.mark.timeout(600)


def test_the_health_check_knows_a_sandbox() -> None:
    """It succeeds for a server, and fails without one."""
    with make_server() as server:
        assert run_program(HEALTH_CHECK, None, SANDBOX_PORT=str(server.port)).returncode == 0
    assert run_program(HEALTH_CHECK, None, SANDBOX_PORT=str(free_port())).returncode == 1


class Builder(NamedTuple):
    """Images and containers in a folder of the test, separate from those of the host."""

    storage: Path

    def run(self, *arguments: str) -> str:
        """Run buildah, and return its output."""
        completed = run_program(self.command(*arguments), None, 400)
        assert completed.returncode == 0, completed.stdout[-2000:] + completed.stderr[-2000:]
        return completed.stdout.strip()

    def command(self, *arguments: str) -> list[str]:
        """Return a command of buildah, which needs neither a daemon nor namespaces."""
        storage_options = ["--root", str(self.storage / "root"), "--runroot", str(self.storage / "run")]
        program = ["env", "BUILDAH_ISOLATION=chroot", "buildah", "--storage-driver", "vfs"]
        return [*program, *storage_options, *arguments]


@pytest.fixture
def builder(tmp_path: Path) -> Builder:
    """A builder with the image."""
    require("buildah", "debootstrap")
    if os.geteuid() != 0:
        pytest.skip("needs root to build images")
    image_builder = Builder(tmp_path)
    base = image_builder.storage / "base"
    packages = "--include=python3,python3-venv,ca-certificates"
    bootstrap = ["debootstrap", "--variant=minbase", packages, "bookworm", str(base)]
    completed = run_program(bootstrap, None, 400)
    if completed.returncode != 0:
        unavailable(f"the base image cannot be built: {completed.stdout[-200:]}")
    container = image_builder.run("from", "scratch")
    image_builder.run("copy", "--quiet", container, str(base), "/")
    image_builder.run("commit", "--quiet", container, BASE)
    trial = run_program(image_builder.command("run", container, "--", "true"))
    if trial.returncode != 0:
        pytest.skip(f"containers cannot run: {trial.stderr[-200:]}")
    volumes = [f"--volume={path}:{path}:ro" for path in HOST_PATHS if Path(path).exists()]
    base_options = ["--build-arg", f"BASE={BASE}", "--format", "docker"]
    image_builder.run(
        "build", *volumes, *base_options, "-t", IMAGE, "-f", str(ROOT / "Containerfile"), str(ROOT)
    )
    return image_builder


@pytest.fixture
def container(builder: Builder) -> Iterator[str]:
    """A container of the image."""
    name = builder.run("from", IMAGE)
    yield name
    builder.run("rm", name)


def check_configuration(builder: Builder) -> None:
    """The image runs as an unprivileged user, with a health check and a volume for the state."""
    config = builder.run(
        "inspect", "--type", "image", "--format",
        "{{.Docker.Config.User}} {{.Docker.Config.Entrypoint}} {{.Docker.Config.Cmd}} "
        "{{.Docker.Config.Healthcheck.Test}} {{.Docker.Config.Volumes}}", IMAGE,
    )  # fmt: skip
    check = " ".join(("CMD", *HEALTH_CHECK))
    assert config == f"10001:10001 [payment-sandbox] [serve] [{check}] map[/state:{{}}]"


def check_state_survives_kill(builder: Builder, container: str) -> None:
    """A container is reachable, healthy, and has its orders after a kill."""
    port = free_port()
    orders: list[str] = []
    for _ in range(2):
        options = ["--port", str(port), "--ready-file", "/state/ready.json", "--quiet"]
        serve = ["run", "--network", "host", container, "--", "payment-sandbox", "serve", *options]
        with subprocess.Popen(builder.command(*serve), stdout=subprocess.PIPE) as serving:
            try:
                assert serving.stdout is not None
                assert serving.stdout.readline(), "the server has ended"
                with closing(SandboxClient(f"http://127.0.0.1:{port}", "sandbox-key")) as client:
                    assert [item["id"] for item in client.orders()] == orders
                    orders.insert(0, trigger(client, "paid")["order"]["id"])
                assert (
                    requests.post(f"http://127.0.0.1:{port}/control/projects/", timeout=5).status_code == 401
                )
                health = ["run", "--network", "host", container, "--", "payment-sandbox", "health"]
                assert builder.run(*health, f"http://127.0.0.1:{port}").startswith("ok")
            finally:
                ready = json.loads(builder.run("run", container, "--", "cat", "/state/ready.json"))
                os.kill(ready["pid"], signal.SIGKILL)  # containers share the process ids of the host


def check_writable_paths(builder: Builder, container: str) -> None:
    """The user of the image can write only the state."""
    script = "id -u; for place in /opt/sandbox/bin /usr /etc /; do touch $place/x 2>&1 | wc -l; done; touch /state/x"
    output = builder.run("run", container, "--", "sh", "-c", script)
    assert output.split() == ["10001", "1", "1", "1", "1"]


def check_contents(builder: Builder, container: str) -> None:
    """The image has neither pip nor the source."""
    programs = builder.run("run", container, "--", "ls", "/opt/sandbox/bin").split()
    assert "payment-sandbox" in programs
    assert "pip" not in programs
    assert builder.run("run", container, "--", "sh", "-c", "ls -d /source 2>/dev/null || echo none") == "none"


def test_the_image(builder: Builder, container: str) -> None:
    """The image works; a single test, so that it is built once."""
    check_configuration(builder)
    check_state_survives_kill(builder, container)
    check_writable_paths(builder, container)
    check_contents(builder, container)
