"""The simulator's part of options: a file each, all found by being here.

An option's file has its effects, what engines wait for, what the checker sees touched, what it
counts, and how random programs draw it. It adds them to *seams* of the files that it is about
(``vdla.sim.compiled.seams``), which don't know it.
"""

from importlib import import_module
from pkgutil import iter_modules

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")
