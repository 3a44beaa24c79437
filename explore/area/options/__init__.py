"""Options of a config to the area's model: a file each, named as in ``isa/options``, found by being
here.

    file of this folder     features of units · memories and read ports · flip-flops
"""

import sys

from vdla.isa.options import option_files
from vdla.support.seams import import_like

import_like(sys.modules[__name__], option_files())
