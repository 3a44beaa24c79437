"""Schedule search, whatever is scheduled: spaces, searchers, measurement in workers, records.

A target brings what is its own: a space of candidates, how one of them is measured, what the
learned model sees of it, how a record holds it, and which task goes on next. ``points``: what a
space is. ``table``: one that is listed. ``searchers`` and ``ranker``: which candidates to measure.
``outcomes`` and ``measurer``: what became of them, in processes of their own. ``records``: what is
kept. ``tuner``: the loop around all this.
"""
