"""Schedule search for a processor, beside what all targets share (``targets/search``).

``function``: what is scheduled. ``rules``: which schedules there are. ``loop_features``: what the
learned model sees of them. ``stopwatch``: how long one takes. ``tasks``: what is searched for.
"""
