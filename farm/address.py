"""Address at which a farm's scheduler listens, and whether one of this farm is there.

A scheduler is tried with the standard library's sockets first: what is wrong is then known exactly,
and nothing that a stranger sends is read as anything but bytes.
"""

from __future__ import annotations

import errno
import socket
import ssl
from contextlib import closing
from dataclasses import dataclass
from typing import Self
from urllib.parse import urlsplit

from vdla.farm.certificates import Credentials
from vdla.farm.work import FarmError

PATIENCE = 5.0  # seconds for a connection, and for the first byte
PORT = 8786
ENCRYPTED, PLAIN = "tls", "tcp"
INSIST = "--without-encryption"
EXPIRED = 10  # OpenSSL's X509_V_ERR_CERT_HAS_EXPIRED


@dataclass(frozen=True)
class Address:
    """A scheduler's address, as ``tls://10.0.0.5:8786``."""

    scheme: str
    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"

    @property
    def encrypted(self) -> bool:
        """Whether what travels is encrypted, and both ends prove who they are."""
        return self.scheme == ENCRYPTED

    @classmethod
    def read(cls, text: str, without_encryption: bool = False) -> Self:
        """An address that was typed.

        Raises:
            FarmError: it is none, or it is unencrypted and nobody insisted on that.
        """
        try:
            parts = urlsplit(text)
            host, port = parts.hostname, parts.port
        except ValueError:
            host = port = None
        if not host or parts.scheme not in (ENCRYPTED, PLAIN) or parts.path not in ("", "/"):
            raise FarmError(f"{text}: expected an address as tls://HOST:{PORT}")
        result = cls(parts.scheme, host, port or PORT)
        if not result.encrypted and not without_encryption:
            raise FarmError(
                f"{text}: expected tls://, found tcp://, on which anyone who reaches a machine of "
                f"the farm can run code there; {INSIST} insists"
            )
        if result.encrypted and without_encryption:
            raise FarmError(f"{INSIST}: expected tcp://, found {text}")
        return result


def probe(address: Address, credentials: Credentials | None) -> str:
    """The IP address of this machine from which the scheduler can be reached.

    Raises:
        FarmError: there is no scheduler, or one that isn't of the farm that the credentials are of.
    """
    try:
        plain = socket.create_connection((address.host, address.port), PATIENCE)
    except OSError as error:
        reason = error.strerror or str(error)
        raise FarmError(
            f"{address}: expected the scheduler of a farm, found none ({reason}); `vdla farm up` "
            f"starts one"
        ) from None
    with closing(plain):
        own: str = plain.getsockname()[0]
        if credentials is None:
            _first_byte(address, plain)
        else:
            _handshake(address, plain, credentials)
    return own


def free_port(host: str) -> int:
    """A port of a host's at which nobody listens.

    Raises:
        FarmError: this machine doesn't have the address.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        with socket.create_server((host, 0), family=family) as free:
            return int(free.getsockname()[1])
    except OSError as error:
        raise FarmError(listening_fault(Address(ENCRYPTED, host, 0), error)) from None


def listening_fault(address: Address, error: OSError) -> str:
    """Message for when nothing can listen at an address."""
    if error.errno == errno.EADDRINUSE:
        return f"{address}: expected a free port, found it taken; choose another with --port"
    reason = error.strerror or str(error)
    return f"{address}: expected an address of this machine to listen at, found: {reason}"


def _handshake(address: Address, plain: socket.socket, credentials: Credentials) -> None:
    """Proves who we are, and has the scheduler prove that it is one of the same farm."""
    context = ssl.create_default_context(cafile=str(credentials.authority))
    context.check_hostname = False  # the farm's own authority signs nobody else
    context.load_cert_chain(credentials.certificate, credentials.key)
    try:
        encrypted = context.wrap_socket(plain)
    except ssl.SSLCertVerificationError as error:
        raise FarmError(f"{address}: {_certificate_fault(error, credentials)}") from None
    except OSError:
        raise FarmError(
            f"{address}: expected a scheduler that encrypts, found one that doesn't, or no "
            f"scheduler; `vdla farm up` starts one"
        ) from None
    try:
        _first_byte(address, encrypted)
    except ssl.SSLError as error:
        raise FarmError(
            f"{address}: expected the scheduler to take {credentials.certificate}, found it "
            f"refused ({(error.reason or 'unknown').lower().replace('_', ' ')})"
        ) from None
    except ConnectionError:
        raise FarmError(
            f"{address}: expected the scheduler to take {credentials.certificate}, found it refused"
        ) from None


def _certificate_fault(error: ssl.SSLCertVerificationError, credentials: Credentials) -> str:
    if error.verify_code == EXPIRED:
        return (
            "expected a scheduler with a valid certificate, found an expired one; remove "
            "scheduler.pem in the farm's folder, and `vdla farm up` makes a new one"
        )
    return (
        f"expected a scheduler of the {credentials.farm}, as {credentials.authority} says, found "
        f"one of another farm"
    )


def _first_byte(address: Address, stream: socket.socket) -> None:
    """Waits until the scheduler says something: it does once it has taken the connection."""
    try:
        if stream.recv(1):
            return
    except TimeoutError:
        pass
    raise FarmError(
        f"{address}: expected the scheduler of a farm, found something that says nothing; is it "
        f"{PLAIN if address.encrypted else ENCRYPTED}://?"
    )
