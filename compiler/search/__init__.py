"""Schedule search, whatever is scheduled: spaces, searchers, measurement in workers, records.

A target brings what is its own: a space of candidates, how one of them is measured, what a cost
model sees of it, how a record holds it, and which task goes on next. ``points``: what a space is.
``table``: one that is listed. ``searchers``: which candidates to measure, by a ``cost_model``:
``ranker`` is the one that sees features, and of what the other sees ``forest`` has many at once.
``outcomes`` and ``measurer``: what became of them, in processes of their own. ``records``: what is
kept. ``tuner``: the loop around all this.
"""
