"""Schedule search for a GPU, beside what all targets share (``targets/search``).

``function``: what is scheduled. ``rules``: which schedules there are. ``kernel_features``: what the
learned model sees of them. ``stopwatch``: how long one takes. ``tasks``: what is searched for.
"""
