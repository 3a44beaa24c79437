"""A processor: description, rewrites of its graphs, operators, code."""
