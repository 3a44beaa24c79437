"""Who does the work of a command: the machines of a farm, where one is named."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from vdla.farm.address import Address
from vdla.farm.certificates import CLIENT, Credentials, credentials, default_folder
from vdla.options.common import Report

if TYPE_CHECKING:  # with Dask, which not everybody has
    from vdla.farm.client import Farm


def farm_pool(address: str, folder: Path | None, without_encryption: bool, say: Report) -> Farm:
    """The machines of the farm at an address.

    Args:
        address: its scheduler's, as ``vdla farm up`` prints it.
        folder: the farm's certificates; the default one's unless it is given.
        without_encryption: whether an address without TLS is taken.
        say: is told when the farm is gone or back, or has no workers.

    Raises:
        FarmError: the address or the certificates are no good, the farm can't be reached, or it
            runs another vdla.
    """
    from vdla.farm.client import Farm

    return Farm(*access(address, folder, without_encryption, CLIENT), say)


def access(
    address: str, folder: Path | None, without_encryption: bool, role: str
) -> tuple[Address, Credentials | None]:
    """The address of a farm that was typed, and what proves a role there; None without TLS.

    Raises:
        FarmError: the address or the certificates are no good.
    """
    place = Address.read(address, without_encryption)
    home = Path(folder) if folder else default_folder()  # Python's callers may give a text
    proof = credentials(home, role) if place.encrypted else None
    return place, proof
