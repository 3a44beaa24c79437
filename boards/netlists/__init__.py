"""Netlists of boards as circuits that run: of yosys after synthesis, of nextpnr after routing."""
