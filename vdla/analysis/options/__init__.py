"""Options of a config to lockstep and its coverage: a file each, named as in ``isa/options``, found
by being here.

    file of this folder     goals of its values · what its instructions read, write and multiply,
                            of a replay · programs that end in its faults · programs for what
                            chance reaches too seldom

Whoever imports a part of the analyses has all of them.
"""

import sys

from vdla.isa.options import option_files
from vdla.support.seams import import_like

import_like(sys.modules[__name__], option_files())
