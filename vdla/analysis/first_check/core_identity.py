"""Identity of the core: its ID, version, instruction set and config against the config's."""

from __future__ import annotations

from vdla.analysis.first_check.session import Figures, Session, StepFailure
from vdla.isa.config import Config, config_names, load_config
from vdla.isa.identity import Identity
from vdla.isa.registers import IDENTITY, VERSION, register
from vdla.runtime.devices.board import OtherBitstreamError
from vdla.runtime.errors import DeviceError


def check_identity(session: Session) -> Figures:
    """The identity registers, expected and found.

    Raises:
        StepFailure: they are those of another core, release, instruction set or config.
        LinkError: the board doesn't answer.
    """
    core, version, *own = session.transport.read(register("ID").offset, 4)
    actual = Identity.of_words(*own)
    figures = {
        "expected": _registers(IDENTITY, VERSION, Identity.of(session.config)),
        "found": _registers(core, version, actual),
    }
    try:
        session.device  # noqa: B018  it compares them
    except OtherBitstreamError as error:
        raise StepFailure(f"{error}{_advice(session, actual)}", figures) from None
    except DeviceError as error:
        raise StepFailure(str(error), figures) from None
    return figures


def _registers(core: int, version: int, identity: Identity) -> dict[str, str]:
    return {
        "id": f"{core:#010x}",
        "version": f"{version >> 16}.{version & 0xFFFF}",
        "isa": identity.isa,
        "config": identity.config,
    }


def _advice(session: Session, actual: Identity) -> str:
    """Words to type where the board has a bundled config; else how the right bitstream is made."""
    board = session.board.name
    same_isa = actual.isa == Identity.of(session.config).isa
    if same_isa and (known := _named(actual.config)):
        return f"; the board's is {known.name}: vdla board check --board {board} -c {known.name}"
    return f"; vdla synth --board {board} with this config makes it"


def _named(config_hash: str) -> Config | None:
    """The bundled config of a hash."""
    configs = (load_config(name) for name in config_names())
    return next((config for config in configs if config.hash == config_hash), None)
