"""The image: built by ``Containerfile`` on a base made here, and run as its user."""

import json
import os
import shutil
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
from tests.support.documentation import ROOT
from tests.support.ports import free_port

BASE = "localhost/python-base"
IMAGE = "payment-sandbox"
PROGRAMS = ("buildah", "debootstrap")
OF_THE_HOST = ("/etc/pip.conf", "/etc/ssl/certs")  # so that pip works in the build as it does here
pytestmark = pytest.mark.timeout(600)


class Builder(NamedTuple):
    """Images and containers in a folder of the test; nothing of the host's is touched."""

    storage: Path

    def run(self, *arguments: str) -> str:
        """Run buildah; returns what it prints."""
        ran = subprocess.run(
            self.command(*arguments), capture_output=True, text=True, timeout=400, check=False
        )
        assert ran.returncode == 0, ran.stdout[-2000:] + ran.stderr[-2000:]
        return ran.stdout.strip()

    def command(self, *arguments: str) -> list[str]:
        """A command of buildah. It needs no daemon, and no namespaces that a test machine may refuse."""
        places = ["--root", str(self.storage / "root"), "--runroot", str(self.storage / "run")]
        return ["env", "BUILDAH_ISOLATION=chroot", "buildah", "--storage-driver", "vfs", *places, *arguments]


@pytest.fixture
def builder(tmp_path: Path) -> Builder:
    """A builder that has the image."""
    missing = [name for name in PROGRAMS if shutil.which(name) is None]
    if missing or os.geteuid() != 0:
        pytest.skip(f"needs root and {' and '.join(PROGRAMS)}; .ci/run installs them")
    made = Builder(tmp_path)
    base = made.storage / "base"
    packages = "--include=python3,python3-venv,ca-certificates"
    bootstrap = ["debootstrap", "--variant=minbase", packages, "bookworm", str(base)]
    ran = subprocess.run(bootstrap, capture_output=True, text=True, timeout=400, check=False)
    if ran.returncode != 0:
        pytest.skip(f"no base image can be made here: {ran.stdout[-200:]}")
    container = made.run("from", "scratch")
    made.run("copy", "--quiet", container, str(base), "/")
    made.run("commit", "--quiet", container, BASE)
    tried = subprocess.run(
        made.command("run", container, "--", "true"), capture_output=True, text=True, check=False
    )
    if tried.returncode != 0:
        pytest.skip(f"no container can run here: {tried.stderr[-200:]}")
    volumes = [f"--volume={path}:{path}:ro" for path in OF_THE_HOST if Path(path).exists()]
    of_base = ["--build-arg", f"BASE={BASE}", "--format", "docker"]
    made.run("build", *volumes, *of_base, "-t", IMAGE, "-f", str(ROOT / "Containerfile"), str(ROOT))
    return made


@pytest.fixture
def container(builder: Builder) -> Iterator[str]:
    """A container of the image."""
    made = builder.run("from", IMAGE)
    yield made
    builder.run("rm", made)


def says_how_it_is_run(builder: Builder) -> None:
    """As a user without rights, with a health check and a volume for the state."""
    config = builder.run(
        "inspect", "--type", "image", "--format",
        "{{.Docker.Config.User}} {{.Docker.Config.Entrypoint}} {{.Docker.Config.Cmd}} "
        "{{.Docker.Config.Healthcheck.Test}} {{.Docker.Config.Volumes}}", IMAGE,
    )  # fmt: skip
    assert config == (
        "10001:10001 [payment-sandbox] [serve] [CMD sh -c payment-sandbox health http://127.0.0.1:${SANDBOX_PORT:-8080}] map[/state:{}]"
    )


def serves_and_keeps_its_state(builder: Builder, container: str) -> None:
    """Reachable from other machines, healthy, and with its orders after a kill."""
    port = free_port()
    orders: list[str] = []
    for _ in range(2):
        options = ["--port", str(port), "--ready-file", "/state/ready.json", "--quiet"]
        serve = ["run", "--network", "host", container, "--", "payment-sandbox", "serve", *options]
        with subprocess.Popen(builder.command(*serve), stdout=subprocess.PIPE) as serving:
            try:
                assert serving.stdout is not None
                assert serving.stdout.readline(), "it has ended"
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
                os.kill(ready["pid"], signal.SIGKILL)  # this isolation has no process ids of its own


def writes_only_the_state(builder: Builder, container: str) -> None:
    """Not the program, nor anything of the system."""
    script = "id -u; for place in /opt/sandbox/bin /usr /etc /; do touch $place/x 2>&1 | wc -l; done; touch /state/x"
    found = builder.run("run", container, "--", "sh", "-c", script)
    assert found.split() == ["10001", "1", "1", "1", "1"]


def has_no_tests_and_no_tools(builder: Builder, container: str) -> None:
    """Only what serves."""
    found = builder.run("run", container, "--", "ls", "/opt/sandbox/bin")
    assert "payment-sandbox" in found.split()
    assert "pip" not in found.split()
    assert builder.run("run", container, "--", "sh", "-c", "ls -d /source 2>/dev/null || echo none") == "none"


def test_the_image(builder: Builder, container: str) -> None:
    """One test, so that the image is built once."""
    says_how_it_is_run(builder)
    serves_and_keeps_its_state(builder, container)
    writes_only_the_state(builder, container)
    has_no_tests_and_no_tools(builder, container)
