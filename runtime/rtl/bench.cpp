// The bench around a Verilated design that has a core in it: a clock, a driver for the core's
// registers, the cycles of its engines' events, and waves.
//
// A cycle is: outputs are functions of registers; the memory answers them; the clock rises. A design
// with a fast clock, VDLA_FAST, sees that rise in the middle of the cycle, and with the clock.
//
// The build writes names.h. It has the model, the names of the core's memories in it, and the file of
// the class Memory: the bench's part of what lies behind the core's port. A Memory has
//
//   kPatience   cycles without any activity that make a deadlock
//   ready()     whether its setup after a reset is over
//   serve()     its cycle, before the clock rises; true when anything is under way
//
// and functions of its own for the host. dram.h models the memory behind a core that is alone; the
// one of boards/virtual/ is for a whole board, in which the memory is a part of the design.

#include <cstdint>
#include <memory>

#include "names.h"
#include VDLA_MEMORY
#include "verilated.h"
#ifdef VDLA_TRACE
#include "verilated_fst_c.h"
#endif

namespace {

constexpr int kEngines = VDLA_ENGINES;
constexpr int64_t kSetup = 1 << 22;  // cycles, at most, until the memory is ready

// Starts or finishes of one engine, in order; counted beyond capacity but not stored.
struct Events {
    int64_t* at = nullptr;
    int64_t capacity = 0, count = 0;

    void add(int64_t cycle) {
        if (count < capacity) at[count] = cycle;
        ++count;
    }
};

class Bench {
    VerilatedContext context_;
    std::unique_ptr<Model> top_;

  public:
    Memory memory;
    Events starts[kEngines], finishes[kEngines];

    Bench() : top_{new Model{&context_}}, memory{*top_} {
        top_->aresetn = 0;
        rest(4);
        top_->aresetn = 1;
        tick();
        for (int64_t i = 0; i < kSetup && !memory.ready(); ++i) tick();
    }

    // Verilator takes a model's scopes out of the thread's latest context, whoever that belongs to.
    ~Bench() {
        close_trace();
        Verilated::threadContextp(&context_);
    }

    // Writes a register of the core, over AXI4-Lite.
    void write(uint32_t address, uint32_t value) {
        top_->s_axi_awaddr = address;
        top_->s_axi_wdata = value;
        top_->s_axi_wstrb = 0xF;
        top_->s_axi_awvalid = top_->s_axi_wvalid = 1;
        top_->s_axi_bready = 1;
        top_->eval();
        while (!top_->s_axi_awready) tick(), top_->eval();
        tick();
        top_->s_axi_awvalid = top_->s_axi_wvalid = 0;
        top_->eval();
    }

    // Reads one.
    uint32_t read(uint32_t address) {
        top_->s_axi_araddr = address;
        top_->s_axi_arvalid = 1;
        top_->s_axi_rready = 1;
        top_->eval();
        while (!top_->s_axi_arready) tick(), top_->eval();
        tick();
        top_->s_axi_arvalid = 0;
        top_->eval();
        while (!top_->s_axi_rvalid) tick(), top_->eval();
        const uint32_t value = top_->s_axi_rdata;
        tick();
        return value;
    }

    // Runs until the interrupt (0), until nothing can move any more (1), or for `cycles` (2).
    int run(int64_t cycles) {
        for (int64_t i = 0; i < cycles; ++i) {
            if (top_->irq) return 0;
            if (top_->trace_running && idle_ > Memory::kPatience) return 1;
            tick();
        }
        return 2;
    }

    void rest(int64_t cycles) {
        for (int64_t i = 0; i < cycles; ++i) tick();
    }

    // Forgets the last program's cycles and events; the next cycle in which one runs is cycle 0.
    void rewind() {
        now_ = 0;
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

    bool open_trace(const char* path) {
#ifdef VDLA_TRACE
        close_trace();
        context_.traceEverOn(true);
        trace_.reset(new VerilatedFstC);
        top_->trace(trace_.get(), 99);
        trace_->open(path);
        return trace_->isOpen();
#else
        (void)path;
        return false;
#endif
    }

    void close_trace() {
#ifdef VDLA_TRACE
        if (trace_) trace_->close();
        trace_.reset();
#endif
    }

  private:
#ifdef VDLA_TRACE
    std::unique_ptr<VerilatedFstC> trace_;
    uint64_t time_ = 0;  // half cycles
#endif
    int64_t now_ = 0;  // cycles of the program: 0 is its first
    int64_t idle_ = 0;

    // One clock cycle: the memory answers, engines' events are noted, the clock rises.
    void tick() {
        top_->aclk = 0;
        set_fast(0);
        bool active = memory.serve();
        top_->eval();
        dump();
        if (top_->trace_running) {
            active |= note();
            idle_ = active ? 0 : idle_ + 1;
            ++now_;
        }
#ifdef VDLA_FAST
        for (int level : {1, 0}) {
            set_fast(level);
            top_->eval();
        }
#endif
        top_->aclk = 1;
        set_fast(1);
        top_->eval();
        dump();
    }

    void set_fast([[maybe_unused]] int level) {
#ifdef VDLA_FAST
        top_->VDLA_FAST = level;
#endif
    }

    void dump() {
#ifdef VDLA_TRACE
        if (trace_) trace_->dump(time_);
        ++time_;
#endif
    }

    // Whether an engine has an instruction under way.
    bool note() {
        uint32_t start = top_->trace_start, finish = top_->trace_finish;
        if (!(start | finish)) return in_flight();
        for (int e = 0; e < kEngines; ++e) {
            if (start >> e & 1) starts[e].add(now_);
            if (finish >> e & 1) finishes[e].add(now_);
        }
        return true;
    }

    bool in_flight() const {
        for (int e = 0; e < kEngines; ++e)
            if (starts[e].count != finishes[e].count) return true;
        return false;
    }
};

}  // namespace

extern "C" {

Bench* vdla_new() { return new Bench; }
void vdla_free(Bench* bench) { delete bench; }
Memory* vdla_memory(Bench* bench) { return &bench->memory; }

void vdla_events(Bench* bench, int engine, int64_t* starts, int64_t* finishes, int64_t capacity) {
    bench->starts[engine] = {starts, capacity, 0};
    bench->finishes[engine] = {finishes, capacity, 0};
}

void vdla_rewind(Bench* bench) { bench->rewind(); }
void vdla_rest(Bench* bench, int64_t cycles) { bench->rest(cycles); }
void vdla_write(Bench* bench, uint32_t address, uint32_t value) { bench->write(address, value); }
uint32_t vdla_read(Bench* bench, uint32_t address) { return bench->read(address); }
int vdla_run(Bench* bench, int64_t cycles) { return bench->run(cycles); }

uint8_t* vdla_scratchpad(Bench* bench, int which, uint64_t* stride, uint64_t* depth) {
    return bench->scratchpad(which, stride, depth);
}

int vdla_trace(Bench* bench, const char* path) { return bench->open_trace(path); }
void vdla_trace_close(Bench* bench) { bench->close_trace(); }
}
