"""https: the sandbox's authority, given certificates, and trusted receivers."""

import socket
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests
import trustme

from payment_sandbox.serving import tls
from payment_sandbox.serving.config import Security
from payment_sandbox.serving.server import Server
from payment_sandbox.serving.sessions import CertificateRefused, trusting_context
from payment_sandbox.serving.tls import certificate_names, create_own_context
from tests.support.driver import Sandbox, card
from tests.support.servers import make_server
from tests.support.shop import Shop


@pytest.fixture
def secure_server(state: Path) -> Iterator[Server]:
    """A server with a certificate of the sandbox's authority."""
    security = Security(create_own_context(["shop.test"]), authority=tls.authority_file())
    with make_server(security=security) as server:
        yield server


def trusting_session() -> requests.Session:
    """Return a session that trusts the sandbox's authority."""
    session = requests.Session()
    session.trust_env, session.verify = False, str(tls.authority_file())
    return session


def test_the_port_serves_https_and_no_http(secure_server: Server, state: Path) -> None:
    """The certificate is valid for every name and clients that trust the authority, and refused by others."""
    assert secure_server.url.startswith("https://127.0.0.1:")
    for url in (
        secure_server.url,
        secure_server.local_url,
        secure_server.url.replace("127.0.0.1", "localhost"),
    ):
        answer = requests.get(f"{url}/health/", timeout=60, verify=str(state / "ca.pem"))
        assert answer.json()["status"] == "ok"
    context = ssl.create_default_context(cafile=str(state / "ca.pem"))
    for name in ("localhost", "shop.test"):
        with (
            socket.create_connection(("127.0.0.1", secure_server.port), timeout=60) as plain,
            context.wrap_socket(plain, server_hostname=name) as wrapped,
        ):
            assert wrapped.version() in ("TLSv1.2", "TLSv1.3")
    with pytest.raises(requests.exceptions.SSLError):
        requests.get(f"{secure_server.url}/health/", timeout=60)
    with pytest.raises(requests.exceptions.ConnectionError):
        requests.get(f"{secure_server.url.replace('https', 'http')}/health/", timeout=60)


def test_addresses_say_https_where_they_have_a_scheme(secure_server: Server) -> None:
    """Addresses of pages use https; cookies are secure only over https."""
    sandbox = Sandbox(secure_server, trusting_session(), absolute_urls=True)
    order = sandbox.place(card())
    page = order["transactions"][0]["payment_url"]
    assert page.startswith(secure_server.url)
    shown = requests.get(f"{page}?language=de", timeout=60, verify=str(tls.authority_file()))
    assert "Secure" in shown.headers["Set-Cookie"]


def test_a_broken_handshake_does_not_disturb_other_clients(secure_server: Server) -> None:
    """Silent clients and broken handshakes do not affect other clients."""
    silent = socket.create_connection(("127.0.0.1", secure_server.port), timeout=60)
    for first_bytes in (b"\x16\x03\x01\x00\x05hello", b"\x16", b"\x00\x01\x02"):
        with socket.create_connection(("127.0.0.1", secure_server.port), timeout=60) as broken:
            broken.sendall(first_bytes)
    with trusting_session() as session:
        assert session.get(f"{secure_server.local_url}/health/", timeout=60).status_code == 200
    silent.close()


def certificate_files(folder: Path, name: str = "localhost") -> tuple[Path, Path, Path]:
    """Write a certificate, its key and its issuer's certificate; return the files."""
    authority = trustme.CA()
    issued = authority.issue_cert(name)
    certificate, key, issuer = folder / "cert.pem", folder / "key.pem", folder / "issuer.pem"
    certificate.write_bytes(b"".join(blob.bytes() for blob in issued.cert_chain_pems))
    key.write_bytes(issued.private_key_pem.bytes())
    issuer.write_bytes(authority.cert_pem.bytes())
    return certificate, key, issuer


class SecureShop(Shop):
    """A shop with a certificate of another authority."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        certificate, key, self.issuer = certificate_files(folder, "localhost")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self.url = f"https://localhost:{self._server.server_port}/webhook"


@pytest.fixture
def secure_shop(tmp_path: Path) -> Iterator[SecureShop]:
    """A shop that serves only https."""
    shop = SecureShop(tmp_path)
    yield shop
    shop.close()


def outcome(security: Security, url: str) -> str | int:
    """Deliver a webhook to this address; return its error or status."""
    with make_server(security=security, clock="frozen") as server:
        sandbox = Sandbox(server, webhook_url=url)
        sandbox.pay(sandbox.place(card()))
        sandbox.settle()
        attempt = sandbox.webhooks()[0]["attempts"][0]
        result: str | int = attempt["error"] or attempt["response"]["status"]
        return result


def test_webhooks_reach_a_shop_with_a_certificate_of_its_own(
    secure_shop: SecureShop, shop: Shop, tmp_path: Path
) -> None:
    """The certificate's own authority must be trusted, unless checks are disabled; http still works."""
    other = tmp_path / "other"
    other.mkdir()
    for trusted in (None, trusting_context(certificate_files(other)[2])):
        refused = str(outcome(Security(trusted_receivers=trusted), secure_shop.url))
        assert "is not trusted" in refused
        assert refused.endswith("; serve --webhook-ca FILE trusts the certificates in a file")
    for trusted in (trusting_context(secure_shop.issuer), trusting_context(None, insecure=True)):
        assert outcome(Security(trusted_receivers=trusted), secure_shop.url) == 200
        assert outcome(Security(trusted_receivers=trusted), shop.url) == 200


def test_a_trusted_certificate_of_another_name_is_refused(tmp_path: Path) -> None:
    """A mismatch of names is refused, by the system's library or by an older urllib3."""
    shop = SecureShop(tmp_path)
    try:
        url = shop.url.replace("localhost", "127.0.0.1")
        error = str(outcome(Security(trusted_receivers=trusting_context(shop.issuer)), url))
        assert "127.0.0.1" in error
        assert "match" in error
    finally:
        shop.close()


def test_every_address_is_in_the_certificate() -> None:
    """A server that listens everywhere includes the addresses of this machine."""
    assert list(certificate_names("127.0.0.1", "pay.test", ["sandbox"])) == [
        "127.0.0.1",
        "pay.test",
        "sandbox",
    ]
    assert "0.0.0.0" not in list(certificate_names("0.0.0.0", None, []))


@pytest.mark.parametrize("name", ["my_shop", "-x", "a" * 70, "[::1]"])
def test_a_name_that_no_certificate_can_have_is_refused(name: str, state: Path) -> None:
    """An invalid name is refused instead of being omitted from the certificate."""
    with pytest.raises(CertificateRefused, match="a certificate cannot name"):
        create_own_context([name])
