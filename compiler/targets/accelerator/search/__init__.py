"""Schedule search for the accelerator: tiles, and their cycles on the simulator.

``workload``: what is scheduled. ``tile_space`` and ``tile_features``: which tiles there are, and
what the learned model sees of them. ``simulation``: how many cycles one takes. ``tile_records``:
what is kept. ``transfer``: what other workloads teach. ``tile_task``: a search for one workload.
``choose``: the tile that a compilation takes.
"""
