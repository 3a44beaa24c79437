"""The RTL as a device: Verilog, compiled by Verilator around a small bench, driven by its CSRs."""
