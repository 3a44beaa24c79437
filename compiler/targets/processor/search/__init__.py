"""What schedule search needs of a processor: schedules of its functions, and how long they take.

``function``: what is scheduled. ``sketch`` and ``rules``: which schedules there are.
``sketch_space`` and ``loop_features``: what the searchers see of them. ``stopwatch``: how long one
takes. ``function_records``: what is kept. ``function_task``: a search for one function, and which
function gets the next trials.
"""
