"""The ring in RTL (hw/core/ring.py), of three engines and of four: whose tokens an engine pops.

1. A token that an engine pushes at a side can be popped by the engine that stands there, at the
   side where the first one stands, and by no other: in every cycle an engine has, at each side, as
   many tokens as the engine there has pushed to it and it hasn't popped.
2. An engine may start when all that it names is there, and then leaves no queue with more tokens
   than it holds.

Instructions are free, and so is when engines start and finish. Assumed: an engine starts only when
``ready``, and pushes only tokens of instructions that it has started.
"""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from amaranth import Cat, Module, Signal
from planting import plant

from vdla.hw.core import ring as ring_file
from vdla.hw.core.ring import Ring
from vdla.hw.interfaces import command
from vdla.hw.layout import layout
from vdla.isa.config import load_config
from vdla.isa.encoding import instruction_bits
from vdla.isa.ring import numbered, ring_of
