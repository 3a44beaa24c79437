"""A farm's certificates: its own authority, and one certificate each for three roles.

    ca.pem, ca-key.pem                  the farm's authority; its key stays where the farm was made
    scheduler.pem, scheduler-key.pem    whom workers and clients connect to
    worker.pem, worker-key.pem          who does jobs
    client.pem, client-key.pem          who has jobs done

A machine that takes part needs ca.pem and the two files of its role in a folder, and no more. A
client's certificate is good for connecting alone: who holds it can't pose as a scheduler.

Whoever holds a key may run code on all machines of the farm: keys have mode 0600.
"""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from vdla.farm.work import FarmError
from vdla.support.files import atomic_write
from vdla.support.install import pip_install

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
    from cryptography.x509 import Certificate, Name, ObjectIdentifier

AUTHORITY, SCHEDULER, WORKER, CLIENT = "ca", "scheduler", "worker", "client"
ROLES = (SCHEDULER, WORKER, CLIENT)
AUTHORITY_DAYS, ROLE_DAYS = 3650, 365  # how long certificates are valid
CLOCK_SKEW = timedelta(minutes=10)  # another machine's clock may be behind by so much
PRIVATE = 0o600


@dataclass(frozen=True)
class Credentials:
    """Files with which one role of a farm proves itself, and the authority that it trusts."""

    authority: Path
    certificate: Path
    key: Path
    farm: str  # the name of the authority
    expiry: datetime  # in UTC


def default_folder() -> Path:
    """Folder of a farm's certificates: ``$VDLA_FARM``, else ``$XDG_DATA_HOME/vdla/farm``, else
    ``~/.local/share/vdla/farm``."""
    if folder := os.environ.get("VDLA_FARM"):
        return Path(folder)
    base = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(base, "vdla", "farm")


def complete(folder: Path) -> None:
    """Makes what is missing in a farm's folder: the authority, and each role's certificate.

    Raises:
        FarmError: there is an authority without its key, or what is there can't be read.
        OSError: a file can't be written; names it.
    """
    _require_cryptography()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    authority, key = _files(folder, AUTHORITY)
    missing = [role for role in ROLES if not all(file.exists() for file in _files(folder, role))]
    if not authority.exists():
        _write_pair(folder, AUTHORITY, AUTHORITY_DAYS)
        missing = list(ROLES)
    elif missing and not key.exists():
        raise FarmError(
            f"{key}: expected the key of the farm's authority, to make {missing[0]}.pem with, "
            f"found none; start the farm where it was made, or in an empty folder"
        )
    for role in missing:
        _write_pair(folder, role, ROLE_DAYS)


def credentials(folder: Path, role: str) -> Credentials:
    """The files of a role, once they are proven good.

    Raises:
        FarmError: a file is missing, is no certificate or key, is another farm's, has expired, or
            is a key that others can read.
    """
    _require_cryptography()
    authority_file, _ = _files(folder, AUTHORITY)
    certificate_file, key_file = _files(folder, role)
    authority = _certificate(authority_file)
    certificate = _certificate(certificate_file)
    _check_issuer(certificate_file, certificate, authority_file, authority)
    for file, each in ((authority_file, authority), (certificate_file, certificate)):
        _check_dates(file, each)
    if _key(key_file).public_key() != certificate.public_key():
        raise FarmError(f"{key_file}: expected the key of {certificate_file}, found another one")
    farm, expiry = _name(authority.subject), certificate.not_valid_after_utc
    return Credentials(authority_file, certificate_file, key_file, farm, expiry)


def _require_cryptography() -> None:
    try:
        import cryptography  # noqa: F401
    except ImportError:
        raise FarmError(
            f"a farm: expected the package cryptography, found none; install it with: "
            f"{pip_install('farm')}"
        ) from None


def _files(folder: Path, role: str) -> tuple[Path, Path]:
    """The certificate and the key of a role."""
    return folder / f"{role}.pem", folder / f"{role}-key.pem"


# Checks -------------------------------------------------------------------------------------------


def _certificate(file: Path) -> Certificate:
    from cryptography.x509 import load_pem_x509_certificate

    content = _content(file)
    try:
        return load_pem_x509_certificate(content)
    except ValueError:
        raise FarmError(f"{file}: expected a certificate in PEM, found none in it") from None


def _key(file: Path) -> EllipticCurvePrivateKey:
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    content = _content(file)
    if mode := stat.S_IMODE(file.stat().st_mode) & 0o077:
        raise FarmError(
            f"{file}: expected a key that nobody else can read, found mode "
            f"{PRIVATE | mode:04o}; run: chmod 600 {file}"
        )
    try:
        key = load_pem_private_key(content, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, EllipticCurvePrivateKey):
        raise FarmError(f"{file}: expected a key in PEM, found none in it")
    return key


def _content(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except FileNotFoundError:
        raise FarmError(
            f"{file}: expected a file of the farm's, found none; `vdla farm up` makes it, and says "
            f"which files to copy to other machines"
        ) from None


def _check_issuer(
    file: Path, certificate: Certificate, authority_file: Path, authority: Certificate
) -> None:
    from cryptography.exceptions import InvalidSignature

    if certificate.issuer != authority.subject:
        raise FarmError(
            f"{file}: expected a certificate of the {_name(authority.subject)}, found one of "
            f"the {_name(certificate.issuer)}"
        )
    try:
        certificate.verify_directly_issued_by(authority)
    except (InvalidSignature, ValueError, TypeError):
        raise FarmError(
            f"{file}: expected a certificate signed by {authority_file}, found one signed by "
            f"another key"
        ) from None


def _check_dates(file: Path, certificate: Certificate) -> None:
    now = datetime.now(UTC)
    begin, end = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    if now > end:
        raise FarmError(
            f"{file}: expected a valid certificate, found one that expired on {end:%Y-%m-%d}; "
            f"remove it, and `vdla farm up` makes a new one"
        )
    if now < begin:
        raise FarmError(
            f"{file}: expected a valid certificate, found one that is valid from "
            f"{begin:%Y-%m-%d %H:%M} UTC on; check this machine's clock"
        )


def _name(subject: Name) -> str:
    names = [str(attribute.value) for attribute in subject]
    return names[0] if names else "authority without a name"


# What is made -------------------------------------------------------------------------------------


def _write_pair(folder: Path, role: str, days: float) -> None:
    """Makes a role's key and certificate, which is valid for some days from now on.

    An authority signs its own certificate; the folder's authority signs those of the roles.
    """
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    certificate = _signed(folder, role, key, days)
    certificate_file, key_file = _files(folder, role)
    form = serialization.PrivateFormat.PKCS8
    pem = serialization.Encoding.PEM
    _write(key_file, key.private_bytes(pem, form, serialization.NoEncryption()), PRIVATE)
    _write(certificate_file, certificate.public_bytes(pem), 0o644)


def _write(file: Path, content: bytes, mode: int) -> None:
    with atomic_write(file) as beside:
        os.chmod(beside, mode)  # while it is empty
        beside.write_bytes(content)


def _signed(folder: Path, role: str, key: EllipticCurvePrivateKey, days: float) -> Certificate:
    from cryptography import x509
    from cryptography.hazmat.primitives.hashes import SHA256

    is_authority = role == AUTHORITY
    if is_authority:
        name = f"farm {secrets.token_hex(4)}"
        issuer, signer = _subject(name), key
    else:
        authority_file, authority_key = _files(folder, AUTHORITY)
        name, issuer, signer = role, _certificate(authority_file).subject, _key(authority_key)
    now = datetime.now(UTC)
    builder = (
        x509.CertificateBuilder(issuer, _subject(name), key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - CLOCK_SKEW - timedelta(days=max(0.0, -days)))
        .not_valid_after(now + timedelta(days=days))
        .add_extension(x509.BasicConstraints(is_authority, 0 if is_authority else None), True)
    )
    if not is_authority:
        builder = builder.add_extension(x509.ExtendedKeyUsage(_usages(role)), critical=True)
    return builder.sign(signer, SHA256())


def _subject(name: str) -> Name:
    from cryptography.x509 import Name, NameAttribute
    from cryptography.x509.oid import NameOID

    return Name([NameAttribute(NameOID.COMMON_NAME, name)])


def _usages(role: str) -> Sequence[ObjectIdentifier]:
    from cryptography.x509.oid import ExtendedKeyUsageOID as Usage

    return [Usage.CLIENT_AUTH] if role == CLIENT else [Usage.CLIENT_AUTH, Usage.SERVER_AUTH]
