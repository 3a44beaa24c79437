"""The pool that threads share parallel loops by: C (``pool.c``), and what is generated from it.

``pool64.ll`` and ``pool32.ll`` are its LLVM text, which every object of host code brings along;
``numbers.py`` has its sizes and states. ``python -m vdla.runtime.pool.generate`` writes all three.
"""
