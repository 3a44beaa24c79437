"""Options of a config to the compiler: a file each, named as in ``isa/options``, found by being
here.

    file of this folder     its memory as a scope · its intrinsics · passes over loops that these
                            need · the words of refusals where a config hasn't the option

Operators and rewrites that need an option ask its file. Whoever imports a part of the accelerator
has all of them.
"""

import sys

from vdla.isa.options import option_files
from vdla.support.seams import import_like

import_like(sys.modules[__name__], option_files())
