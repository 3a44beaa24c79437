"""Time that a processor takes for functions: LLVM's optimized text, priced block by block."""
