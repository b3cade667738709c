"""Certificates of the server, from the sandbox's own authority."""

import os
import ssl
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from ipaddress import ip_address
from pathlib import Path
from secrets import token_hex
from typing import Final

import idna

from payment_sandbox.extensions import TLS_EXTRA, NotInstalled, platformdirs, trustme
from payment_sandbox.serving.binding import own_addresses
from payment_sandbox.serving.realtime import wall_now
from payment_sandbox.serving.sessions import CertificateRefused

if sys.platform != "win32":
    import fcntl

CERTIFICATE_FILE: Final = "ca.pem"
ORGANIZATION: Final = "Payment sandbox"
AUTHORITY_FILE: Final = "ca-key.pem"  # includes the certificate, so that the two always match
VALIDITY: Final = timedelta(days=365)  # some systems refuse more than 825 days
OTHERS_BITS: Final = 0o077  # permission bits of group and others
LOCAL_NAMES: Final = ("localhost", "127.0.0.1", "::1")


def authority_folder() -> Path:
    """Return the folder of the sandbox's own authority, in the user's state folder."""
    return platformdirs.user_state_path("payment-sandbox")


def authority_file() -> Path:
    """Return the certificate file that clients must trust."""
    return authority_folder() / CERTIFICATE_FILE


def create_own_context(names: Iterable[str]) -> ssl.SSLContext:
    """Create a server context with a new certificate for these names, from the sandbox's own authority.

    Raises:
        CertificateRefused: the authority's files are damaged or inaccessible, or a name is not a host
            name.
    """
    authority = _load_authority()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    until = wall_now() + VALIDITY
    all_names = dict.fromkeys([*LOCAL_NAMES, *names])
    for name in all_names:
        _refuse_name(name)
    authority.issue_cert(*all_names, not_after=until).configure_cert(context)
    return context


def _refuse_name(name: str) -> None:
    """Refuse a host name that is invalid in certificates, such as one with an underscore."""
    with suppress(ValueError):
        ip_address(name)
        return
    try:
        idna.encode(name, uts46=True)
    except idna.IDNAError as error:
        raise CertificateRefused(
            f"--tls: a certificate cannot name {name!r}: host names have letters, digits, hyphens and dots"
        ) from error


def certificate_names(host: str, public_host: str | None, allowed: Iterable[str]) -> Iterator[str]:
    """Yield the names and addresses of a server, for its certificate."""
    yield from (name for name in (host, public_host, *allowed) if name and not _is_unspecified(name))
    if _is_unspecified(host):
        yield from own_addresses()


def _is_unspecified(name: str) -> bool:
    with suppress(ValueError):
        return ip_address(name).is_unspecified
    return False


def _load_authority() -> "trustme.CA":
    """Load the sandbox's own authority, or create it."""
    try:
        create, load = trustme.CA, trustme.CA.from_pem
    except ImportError as error:
        raise CertificateRefused(str(NotInstalled("--tls", TLS_EXTRA))) from error

    folder = authority_folder()
    private, public = folder / AUTHORITY_FILE, folder / CERTIFICATE_FILE
    try:
        if not private.exists():
            authority = create(organization_name=ORGANIZATION, organization_unit_name="only for tests")
            folder.mkdir(parents=True, exist_ok=True)
            _write_once(private, authority.private_key_pem.bytes() + authority.cert_pem.bytes())
        pem = private.read_bytes()
        authority = load(pem, pem)
        if not public.exists() or public.read_bytes() != authority.cert_pem.bytes():
            _write(public, authority.cert_pem.bytes(), 0o644)
        return authority
    except OSError as error:
        raise CertificateRefused(f"--tls: cannot use {folder}: {str(error.strerror).lower()}") from error
    except ValueError as error:
        raise CertificateRefused(
            f"--tls: {private} is damaged; delete it, and trust the new {public.name}"
        ) from error


def _write_once(path: Path, data: bytes) -> None:
    """Write a key unless the file exists, even if another server is writing the file, too."""
    with _folder_lock(path.parent), _temporary_file(path, data, 0o600) as part, suppress(FileExistsError):
        if not path.exists():
            part.rename(path)  # without a lock (on Windows), rename never replaces a file


def _write(path: Path, data: bytes, mode: int) -> None:
    """Write a file atomically, because another server may read it at any time."""
    with _temporary_file(path, data, mode) as part:
        part.replace(path)


@contextmanager
def _folder_lock(folder: Path) -> Iterator[None]:
    """Lock a folder against writes by other servers; hard links would not work on every volume."""
    descriptor = _lock(folder)
    try:
        yield
    finally:
        if descriptor is not None:
            os.close(descriptor)


def _lock(folder: Path) -> int | None:
    if sys.platform == "win32":
        return None
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


@contextmanager
def _temporary_file(path: Path, data: bytes, mode: int) -> Iterator[Path]:
    """Provide a temporary file beside the target, removed at the end.

    Raises:
        CertificateRefused: other users could read a private file.
    """
    temporary = path.with_name(f".{path.name}.{token_hex(8)}")
    try:
        with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
            if (
                os.name == "posix"
                and not mode & OTHERS_BITS
                and os.fstat(file.fileno()).st_mode & OTHERS_BITS
            ):
                raise CertificateRefused(f"--tls: the volume of {path.parent} would let others read the key")
            file.write(data)
        yield temporary
    finally:
        temporary.unlink(missing_ok=True)
