"""Modules as other programs take them: C objects, shared libraries, WebAssembly, wheels, pages."""
