"""How a board's design becomes a bitstream, or a project for a vendor's tool."""
