"""Schedule search for the functions that run on a processor.

``function``: what is scheduled. ``sketch`` and ``rules``: which schedules there are. ``space`` and
``features``: what the searchers see of them. ``measure``: how long one takes. ``records``: what is
kept. ``tuner``: which function gets the next trials.
"""
