"""Schedule search for targets whose functions are scheduled by traces.

``function``: what is scheduled. ``sketch`` and ``draft``: which schedules there are, and how rules
derive them. ``sketch_space``: what the searchers see of them, ``loop_tree``: what a cost model may.
``stopwatch``: how long one takes.
``function_records``: what is kept. ``function_task``: a search for one function, and which function
gets the next trials. A target adds its own function, its rules and its stopwatch.
"""
