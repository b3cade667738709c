"""Shop systems that nobody here wrote: their plugins know the provider's address, and are not changed for the sandbox.

Each runs in a network of its own, where the line that ``serve --stand-in-for`` prints is in the hosts file.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Final

import pytest

from payment_sandbox.web.docs.library import read_source
from tests.support.blocks import blocks
from tests.support.documentation import ROOT, environment
from tests.support.languages import PROJECTS, fetched, require

CACHE: Final = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "payment-sandbox-tests"
NETWORK: Final = ["unshare", "--net", "--mount", "--kill-child", "--fork", "--pid"]
SCRIPT: Final = """
set -eu
ip link set lo up
mount --bind hosts /etc/hosts
exec "$@"
"""
AS_OF: Final = "2026-11-01"
"""npm takes no package that is newer, which pins those that the pinned ones need."""


def fetch_oscar(folder: Path) -> None:
    """Every version is pinned."""
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile"]
    listed = ["--no-deps", "--target", str(folder), "-r", str(PROJECTS / "oscar" / "requirements.txt")]
    fetched([*pip, *listed], folder)


def fetch_vendure(folder: Path) -> None:
    """Without the scripts that packages want to run: sql.js needs none."""
    shutil.copy(PROJECTS / "vendure" / "package.json", folder)
    fetched(
        ["npm", "install", "--silent", "--no-audit", "--no-fund", "--ignore-scripts", "--before", AS_OF],
        folder,
    )


def fetch_wordpress(folder: Path) -> None:
    """Debian's package, unpacked but not installed: it would bring a web server and a database."""
    download = "apt-get download -qq wordpress || { apt-get update -qq && apt-get download -qq wordpress; }"
    fetched(["sh", "-c", f"({download}) && dpkg -x wordpress_*.deb . && rm wordpress_*.deb"], folder)


SHOPS: Final[dict[str, tuple[tuple[str, ...], Callable[[Path], None]]]] = {
    # the programs that it needs, and where its packages come from
    "oscar": ((), fetch_oscar),
    "vendure": (("node", "npm"), fetch_vendure),
    "woocommerce": (("php", "apt-get", "dpkg"), fetch_wordpress),
}


def packages(shop: str) -> Path:
    """The packages of a shop system, from the index if they have not been fetched before."""
    pins = [path for path in (PROJECTS / shop).iterdir() if path.name in ("requirements.txt", "package.json")]
    kind = sha256("".join([sys.version, AS_OF, *(path.read_text() for path in pins)]).encode()).hexdigest()[
        :12
    ]
    folder = CACHE / f"{shop}-{kind}"
    if not folder.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        part = Path(tempfile.mkdtemp(dir=CACHE))
        try:
            SHOPS[shop][1](part)
            part.rename(folder)
        finally:
            shutil.rmtree(part, ignore_errors=True)
    return folder


@pytest.mark.prove
@pytest.mark.timeout(500)  # it may have to fetch packages
@pytest.mark.parametrize("shop", SHOPS)
def test_a_plugin_with_the_address_built_in(shop: str, tmp_path: Path) -> None:
    """A customer pays by its page; the shop captures what it ships, refunds a part, and shows why more is refused."""
    require("unshare", "ip", "curl", *SHOPS[shop][0])
    if os.geteuid() != 0 or subprocess.run([*NETWORK, "true"], capture_output=True, check=False).returncode:
        pytest.skip("needs a network of its own, which only root may have")
    (tmp_path / "hosts").write_text("127.0.0.1 localhost\n")
    walk = [sys.executable, "-m", f"tests.howto.shops.{shop}", str(packages(shop))]
    ran = subprocess.run(
        [*NETWORK, "bash", "-c", SCRIPT, "bash", *walk],
        cwd=tmp_path,
        env=environment(XDG_STATE_HOME=str(tmp_path / "state"), PYTHONPATH=str(ROOT)),
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    log = tmp_path / "shop.log"
    assert ran.returncode == 0, f"{ran.stderr[-4000:]}\n{log.read_text()[-3000:] if log.exists() else ''}"
    seen = json.loads(ran.stdout)
    amounts = seen.pop("amounts")
    assert amounts["captured"] == 1000
    assert amounts["remaining"] + amounts["voided"] == 1000
    paid = {"oscar": "Authorised", "vendure": "PaymentAuthorized", "woocommerce": "processing"}
    assert "1001 cents is too much: 1000 cents are left to refund" in seen.pop("refused")
    assert seen == {
        "page": ["https://api.payments.example", 200],
        "paid": paid[shop],
        "refunds": [409, 201],
        "webhooks": ["delivered"],
        "findings": ["SET-49"],  # the refund of too much, which the shop tries and shows
    }


def test_the_page_shows_what_runs() -> None:
    """Each file that it shows is that of the project."""
    shown = {block.file: block.text for block in blocks(read_source("shops")) if block.file}
    assert {name.partition("/")[0] for name in shown} == set(SHOPS)
    for name, text in shown.items():
        assert (PROJECTS / name).read_text() == text, f"{name} on the page differs"
