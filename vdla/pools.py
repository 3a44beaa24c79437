"""Who does the work of a command: the machines of a farm, where one is named."""

from __future__ import annotations

from pathlib import Path

from vdla.farm.address import Address
from vdla.farm.certificates import CLIENT, credentials, default_folder
from vdla.farm.work import JobPool
from vdla.options import Report


def farm_pool(address: str, folder: Path | None, without_encryption: bool, say: Report) -> JobPool:
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
    from vdla.farm.client import Farm  # with Dask, which not everybody has

    place = Address.read(address, without_encryption)
    proof = credentials(folder or default_folder(), CLIENT) if place.encrypted else None
    return Farm(place, proof, say)
