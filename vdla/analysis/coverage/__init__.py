"""Functional coverage of lockstep: what the programs so far have made the machines do.

A **goal** is a name like ``"STORE requantizes: a tie goes up"``. ``goals`` lists all of them for a
config, derived from ``isa/`` where they can be; ``Coverage`` ticks off those that a case reached on
the simulator. Groups, the part before the colon, have a file each, or share one; a file has both a
group's goals and what reaches them:

* ``fields``: each value or kind of value of every field of an instruction that started;
* ``values``: operands and results at their corners, in instructions of sound programs;
* ``replay``: hazards, two instructions of different engines at one entry, by kind, memory and
  direction; and the values, of a program that runs once more;
* ``cycles``: tokens, the levels of each token queue, and who waited for it; and causes, what each
  engine's cycles went to, with the instructions in flight;
* ``collection``: endings, every fault at every place, and the deadlock;
* ``bursts``: their length, and what ended them.
"""

from vdla.analysis.coverage.collection import Coverage, goals

__all__ = ["Coverage", "goals"]
