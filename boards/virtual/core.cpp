// The whole board behind the functions of the core's bench (runtime/rtl/bench.cpp): a clock, a driver
// for the core's registers, the trace, and the SDRAM's words.
//
// Memories are reached through names in names.h, which the build writes.

#include <cstdint>
#include <memory>

#include "../../runtime/rtl/driver.h"
#include "Vboard.h"
#include "Vboard___024root.h"
#include "names.h"
#include "verilated.h"

namespace {

constexpr int kEngines = VDLA_ENGINES;
constexpr int64_t kPatience = 4096;  // cycles without any activity of the core that make a deadlock
constexpr int64_t kPowerUp = 1 << 22;  // cycles, at most, until the SDRAM has been set up

class Board {
  public:
    Events starts[kEngines], finishes[kEngines];
    int64_t now = 0;  // cycles of the program: 0 is its first

    Board() : top_{new Vboard{&context_}} {
        top_->rst = 1;
        for (int i = 0; i < 4; ++i) tick();
        top_->rst = 0;
        tick();
        for (int64_t i = 0; i < kPowerUp && !top_->ready; ++i) tick();
    }

    // Verilator takes a model's scopes out of the thread's latest context, whoever that belongs to.
    ~Board() { Verilated::threadContextp(&context_); }

    void write(uint32_t address, uint32_t value) {
        write_register(*top_, [this] { tick(); }, address, value);
    }

    uint32_t read(uint32_t address) {
        return read_register(*top_, [this] { tick(); }, address);
    }

    // Runs until the interrupt (0), until nothing has moved for long (1), or for `cycles` (2).
    int run(int64_t cycles) {
        for (int64_t i = 0; i < cycles; ++i) {
            if (top_->irq) return 0;
            if (top_->trace_running && idle_ > kPatience) return 1;
            tick();
        }
        return 2;
    }

    void rest(int64_t cycles) {
        for (int64_t i = 0; i < cycles; ++i) tick();
    }

    // Forgets the last program's cycles and events; the next cycle in which one runs is cycle 0.
    void rewind() {
        now = 0;
        idle_ = 0;
        for (int e = 0; e < kEngines; ++e) starts[e].count = finishes[e].count = 0;
    }

    uint8_t* scratchpad(int which, uint64_t* stride, uint64_t* depth) {
        switch (which) {
#define VDLA_SCRATCHPAD(index, name)                         \
    case index:                                              \
        *stride = sizeof(top_->rootp->name[0]);              \
        *depth = sizeof(top_->rootp->name) / *stride;        \
        return reinterpret_cast<uint8_t*>(&top_->rootp->name[0]);
            VDLA_SCRATCHPADS
#undef VDLA_SCRATCHPAD
            default: return nullptr;
        }
    }

    uint8_t* words(uint64_t* size) {
        *size = sizeof(top_->rootp->VDLA_WORDS);
        return reinterpret_cast<uint8_t*>(&top_->rootp->VDLA_WORDS[0]);
    }

    int broken() const { return top_->broken; }

  private:
    VerilatedContext context_;
    std::unique_ptr<Vboard> top_;
    int64_t idle_ = 0;

    // One clock cycle: engines' events are noted, the clock rises.
    void tick() {
        top_->clk = 0;
        top_->eval();
        if (top_->trace_running) {
            idle_ = note() ? 0 : idle_ + 1;
            ++now;
        }
        top_->clk = 1;
        top_->eval();
    }

    // Whether an engine has an instruction under way.
    bool note() {
        const uint32_t start = top_->trace_start, finish = top_->trace_finish;
        bool active = start | finish;
        for (int e = 0; e < kEngines; ++e) {
            if (start >> e & 1) starts[e].add(now);
            if (finish >> e & 1) finishes[e].add(now);
            active |= starts[e].count != finishes[e].count;
        }
        return active;
    }
};

}  // namespace

extern "C" {

Board* vdla_new() { return new Board; }
void vdla_free(Board* board) { delete board; }

void vdla_events(Board* board, int engine, int64_t* starts, int64_t* finishes, int64_t capacity) {
    board->starts[engine] = {starts, capacity, 0};
    board->finishes[engine] = {finishes, capacity, 0};
}

void vdla_rewind(Board* board) { board->rewind(); }
void vdla_rest(Board* board, int64_t cycles) { board->rest(cycles); }
void vdla_write(Board* board, uint32_t address, uint32_t value) { board->write(address, value); }
uint32_t vdla_read(Board* board, uint32_t address) { return board->read(address); }
int vdla_run(Board* board, int64_t cycles) { return board->run(cycles); }
int vdla_broken(Board* board) { return board->broken(); }
uint8_t* vdla_words(Board* board, uint64_t* size) { return board->words(size); }

uint8_t* vdla_scratchpad(Board* board, int which, uint64_t* stride, uint64_t* depth) {
    return board->scratchpad(which, stride, depth);
}
}
