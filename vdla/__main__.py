"""Start of the command: an interrupt has its one line while the rest is imported, too."""

from __future__ import annotations

import sys

from vdla.commands import endings


def main() -> None:
    """Imports the command and runs it."""
    try:
        from vdla.commands.cli import main as run
    except KeyboardInterrupt:
        sys.exit(endings.interrupted())
    except (MemoryError, ImportError) as error:
        if not endings.is_out_of_memory(error):
            raise
        sys.exit(endings.out_of_memory(error))
    run()


if __name__ == "__main__":
    main()
