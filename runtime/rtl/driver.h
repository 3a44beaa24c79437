// What the benches of the core and of a whole board share: a driver for the core's registers, over
// AXI4-Lite, and the cycles of its engines' events.

#pragma once

#include <cstdint>

// Starts or finishes of one engine, in order; counted beyond capacity but not stored.
struct Events {
    int64_t* at = nullptr;
    int64_t capacity = 0, count = 0;

    void add(int64_t cycle) {
        if (count < capacity) at[count] = cycle;
        ++count;
    }
};

// Writes a register of `top`, a Verilated model; `tick` is its clock cycle.
template <class Model, class Tick>
void write_register(Model& top, Tick tick, uint32_t address, uint32_t value) {
    top.s_axi_awaddr = address;
    top.s_axi_wdata = value;
    top.s_axi_wstrb = 0xF;
    top.s_axi_awvalid = top.s_axi_wvalid = 1;
    top.s_axi_bready = 1;
    top.eval();
    while (!top.s_axi_awready) tick(), top.eval();
    tick();
    top.s_axi_awvalid = top.s_axi_wvalid = 0;
    top.eval();
}

// Reads a register.
template <class Model, class Tick>
uint32_t read_register(Model& top, Tick tick, uint32_t address) {
    top.s_axi_araddr = address;
    top.s_axi_arvalid = 1;
    top.s_axi_rready = 1;
    top.eval();
    while (!top.s_axi_arready) tick(), top.eval();
    tick();
    top.s_axi_arvalid = 0;
    top.eval();
    while (!top.s_axi_rvalid) tick(), top.eval();
    const uint32_t value = top.s_axi_rdata;
    tick();
    return value;
}
