"""The accelerator: description, rewrites of its graphs, operators, passes over loops, code."""
