"""Schedule search for the accelerator: tiles, and their cycles on the simulator.

``workload``: what is scheduled. ``tile_space``: which tiles there are. ``tile_features`` and
``tile_trees``: what cost models see of them, by a ``tile_view``. ``simulation``: how many cycles
one takes. ``tile_records``: what is kept. ``transfer``: what other workloads teach. ``tile_task``:
a search for one workload. ``choose``: the tile that a compilation takes.
"""
