"""The accelerator's operators: one file each, all found by being here; see ``template``."""

from importlib import import_module
from pkgutil import iter_modules

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")
