"""Third-party shop systems: their plugins have the provider's address built in, and stay unchanged.

Each runs in a network of its own, and its hosts file has the line that ``serve --stand-in-for`` prints."""

import json
import os
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from payment_sandbox.ui.docs.library import read_source
from tests.howto.languages import PROJECTS, fetched
from tests.support.blocks import blocks
from tests.support.documentation import ROOT, run_command
from tests.support.environments import cached
from tests.support.tools import require

NETWORK: Final = ["unshare", "--net", "--mount", "--kill-child", "--fork", "--pid"]
SCRIPT: Final = """
set -eu
ip link set lo up
mount --bind hosts /etc/hosts
exec "$@"
"""
AS_OF: Final = "2026-11-01"
"""npm installs no newer package, which also pins indirect requirements."""


def fetch_vendure(folder: Path) -> None:
    """Fetch Vendure without the installation scripts of packages, which sql.js does not need."""
    shutil.copy(PROJECTS / "vendure" / "package.json", folder)
    fetched(
        ["npm", "install", "--silent", "--no-audit", "--no-fund", "--ignore-scripts", "--before", AS_OF],
        folder,
    )


def fetch_wordpress(folder: Path) -> None:
    """Unpack Debian's package; an installation would add a web server and a database."""
    download = "apt-get download -qq wordpress || { apt-get update -qq && apt-get download -qq wordpress; }"
    fetched(["sh", "-c", f"({download}) && dpkg -x wordpress_*.deb . && rm wordpress_*.deb"], folder)


SHOPS: Final[dict[str, tuple[tuple[str, ...], Callable[[Path], None]]]] = {
    # required programs, and the function that fetches the packages
    "vendure": (("nodejs", "npm"), fetch_vendure),
    "woocommerce": (("php-cli", "apt", "dpkg"), fetch_wordpress),
}


def packages(shop: str) -> Path:
    """Return the folder of a shop system's packages, which are fetched once."""
    pins = [path for path in (PROJECTS / shop).iterdir() if path.name == "package.json"]
    return cached(shop, [AS_OF, *(path.read_text() for path in pins)], SHOPS[shop][1])


@pytest.mark.prove
@pytest.mark.timeout(500)  # for a first download of the packages
@pytest.mark.parametrize("shop", SHOPS)
def test_a_plugin_with_the_address_built_in(shop: str, tmp_path: Path) -> None:
    """A customer pays; the shop captures what it ships, refunds a part, and shows the refusal of more."""
    require("util-linux", "iproute2", "curl", *SHOPS[shop][0])
    if os.geteuid() != 0 or run_command([*NETWORK, "true"], tmp_path).returncode:
        pytest.skip("needs a network of its own, which only root may have")
    (tmp_path / "hosts").write_text("127.0.0.1 localhost\n")
    walk_command = [sys.executable, "-m", "tests.howto.walking", shop, str(packages(shop))]
    script = [*NETWORK, "bash", "-c", SCRIPT, "bash", *walk_command]
    result = run_command(script, tmp_path, 200, PYTHONPATH=str(ROOT))
    log = tmp_path / "shop.log"
    assert result.returncode == 0, (
        f"{result.stderr[-4000:]}\n{log.read_text()[-3000:] if log.exists() else ''}"
    )
    walk_result = json.loads(result.stdout)
    amounts = walk_result.pop("amounts")
    assert amounts["captured"] == 1000
    assert amounts["remaining"] + amounts["voided"] == 1000
    paid = {"vendure": "PaymentAuthorized", "woocommerce": "processing"}
    assert "1001 cents is too much: 1000 cents are left to refund" in walk_result.pop("refused")
    assert walk_result == {
        "page": ["https://api.payments.example", 200],
        "paid": paid[shop],
        "refunds": [409, 201],
        "webhooks": ["delivered"],
        "findings": ["SET-49"],  # the excessive refund, whose error the shop shows
    }


def test_the_page_shows_the_tested_files() -> None:
    """Each file on the page equals the project's file, and each file that the page names exists."""
    text = read_source("operation")
    for block in blocks(text):
        if block.file and block.file.partition("/")[0] in SHOPS:
            assert (PROJECTS / block.file).read_text() == block.text, f"{block.file} on the page differs"
    named = [name for name in re.findall(r"`([\w/.-]+/[\w/.-]*)`", text) if name.partition("/")[0] in SHOPS]
    assert {name.partition("/")[0] for name in named} == set(SHOPS)
    assert [name for name in named if not (PROJECTS / name).exists()] == []
