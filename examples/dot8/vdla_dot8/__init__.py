"""dot8, a target for vdla in a package of its own."""
