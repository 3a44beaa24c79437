// The bench around the Verilated core: a clock, a driver for the registers, and the memory.
//
// The memory is the contract of docs/timing.md, section 2, written a second time: the simulator's
// is sim/timing/memory.py. One with banks (section 12) is in banks.h. A cycle is: outputs are functions of registers; the bench answers them;
// the clock rises.
//
// Memories of the core are reached through names in names.h, which the build writes.

#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <vector>

#include "Vvdla.h"
#include "Vvdla___024root.h"
#include "banks.h"
#include "driver.h"
#include "names.h"
#include "verilated.h"
#ifdef VDLA_TRACE
#include "verilated_fst_c.h"
#endif

namespace {

constexpr uint32_t kOkay = 0, kSlaveError = 2, kDecodeError = 3;
constexpr int kEngines = VDLA_ENGINES;
constexpr int64_t kPatience = 64;  // cycles without any activity that make a deadlock

struct Burst {
    uint64_t address;
    uint32_t left;
    uint32_t id;
    int64_t ready;
};

struct Answer {
    int64_t at;
    uint32_t response;
};

// A beat on its way from a memory with banks.
struct Beat {
    int64_t at;
    uint32_t id, response;
    bool last;
    std::vector<uint8_t> data;
};

// What the memory is: set by the host before a run.
struct Memory {
    uint8_t* data = nullptr;
    uint64_t size = 0, base = 0;
    uint64_t latency = 0, interval = 1;
    uint64_t error_from = 0, error_to = 0;  // beats in [from, to) bear an error
    bool has_banks = false;

    uint32_t response(uint64_t address, uint64_t bytes) const {
        if (address + bytes > size) return kDecodeError;
        return address >= error_from && address < error_to ? kSlaveError : kOkay;
    }
};

template <class T>
void copy_out(uint8_t* to, const T& port, size_t bytes) { std::memcpy(to, &port, bytes); }
template <class T>
void copy_in(T& port, const uint8_t* from, size_t bytes) { std::memcpy(&port, from, bytes); }

class Bench {
  public:
    Memory memory;
    banks::Controller controller;
    Events starts[kEngines], finishes[kEngines];
    int64_t now = 0;  // cycles of the program: 0 is its first

    Bench() : top_{new Vvdla{&context_}} {
        top_->aresetn = 0;
        for (int i = 0; i < 4; ++i) tick();
        top_->aresetn = 1;
        tick();
    }

    // Verilator takes a model's scopes out of the thread's latest context, whoever that belongs to.
    ~Bench() {
        close_trace();
        Verilated::threadContextp(&context_);
    }

    void write(uint32_t address, uint32_t value) {
        write_register(*top_, [this] { tick(); }, address, value);
    }

    uint32_t read(uint32_t address) {
        return read_register(*top_, [this] { tick(); }, address);
    }

    // Runs until the interrupt (0), until nothing can move any more (1), or for `cycles` (2).
    int run(int64_t cycles) {
        for (int64_t i = 0; i < cycles; ++i) {
            if (top_->irq) return 0;
            if (top_->trace_running && idle_ > kPatience) return 1;
            tick();
        }
        return 2;
    }

    // Forgets the last program's cycles and events; the next cycle in which one runs is cycle 0.
    void rewind() {
        now = 0;
        idle_ = 0;
        for (int e = 0; e < kEngines; ++e) starts[e].count = finishes[e].count = 0;
        bus_free_ = 0;
        served_write_ = false;
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
    VerilatedContext context_;
    std::unique_ptr<Vvdla> top_;
#ifdef VDLA_TRACE
    std::unique_ptr<VerilatedFstC> trace_;
#endif
    std::deque<Burst> reads_;
    std::deque<Answer> answers_;
    uint64_t write_address_ = 0;
    uint32_t write_response_ = kOkay;
    bool write_opens_ = true, served_write_ = false;
    int64_t bus_free_ = 0, time_ = 0, idle_ = 0;
    int64_t cycle_ = 0;  // since a program began, for a memory with banks
    bool ran_ = false;   // in the cycle before
    std::deque<Beat> coming_;
    std::vector<uint8_t> written_ = std::vector<uint8_t>(VDLA_PORT_BYTES);  // the register for beats

    // One clock cycle: the memory answers, engines' events are noted, the clock rises.
    void tick() {
        top_->aclk = 0;
        bool active = memory.has_banks ? serve_banks() : serve();
        top_->eval();
        dump();
        if (top_->trace_running) {
            active |= note();
            idle_ = active ? 0 : idle_ + 1;
            ++now;
        } else {
            ++away_;
        }
        top_->aclk = 1;
        top_->eval();
        dump();
    }

    int64_t away_ = 0;  // cycles in which no program runs: memory time goes on

    void dump() {
#ifdef VDLA_TRACE
        if (trace_) trace_->dump(static_cast<uint64_t>(time_));
#endif
        ++time_;
    }

    bool note() {
        uint32_t start = top_->trace_start, finish = top_->trace_finish;
        if (!(start | finish)) return in_flight();
        for (int e = 0; e < kEngines; ++e) {
            if (start >> e & 1) starts[e].add(now);
            if (finish >> e & 1) finishes[e].add(now);
        }
        return true;
    }

    bool in_flight() const {
        for (int e = 0; e < kEngines; ++e)
            if (starts[e].count != finishes[e].count) return true;
        return false;
    }

    // The memory's cycle; true when anything is under way.
    bool serve() {
        const int64_t t = now + away_;
        top_->m_axi_arready = 1;
        if (top_->m_axi_arvalid)
            reads_.push_back({top_->m_axi_araddr - memory.base, top_->m_axi_arlen + 1u,
                              top_->m_axi_arid, t + 1 + static_cast<int64_t>(memory.latency)});
        answer(t);
        bool read_waits = !reads_.empty() && reads_.front().ready <= t && t >= bus_free_;
        bool write_waits = top_->m_axi_wvalid && t >= bus_free_;
        bool reads = read_waits && (!write_waits || served_write_);
        bool writes = write_waits && !reads;
        if (reads || writes) {
            bus_free_ = t + static_cast<int64_t>(memory.interval);
            served_write_ = writes;
        }
        top_->m_axi_rvalid = reads;
        if (reads) read_beat();
        top_->m_axi_awready = writes;
        top_->m_axi_wready = writes;
        if (writes) write_beat(t);
        return !reads_.empty() || !answers_.empty() || writes || top_->m_axi_arvalid;
    }

    // The same of a memory with banks, for which a program begins in cycle 0.
    bool serve_banks() {
        const bool begins = top_->trace_running && !ran_;
        ran_ = top_->trace_running;
        if (begins) controller.reset();
        const int64_t t = cycle_ = begins ? 0 : cycle_ + 1;
        top_->m_axi_arready = 1;
        if (top_->m_axi_arvalid)
            controller.accept_read(top_->m_axi_arid, top_->m_axi_araddr - memory.base,
                                   top_->m_axi_arlen + 1u, t);
        answer(t);
        deliver(t);
        top_->m_axi_awready = controller.address_room();
        top_->m_axi_wready = controller.beat_room();
        std::optional<banks::Request> address;
        if (top_->m_axi_awready && top_->m_axi_awvalid)
            address = banks::Request{true, 0, top_->m_axi_awaddr - memory.base,
                                     top_->m_axi_awlen + 1u};
        const bool beat = top_->m_axi_wready && top_->m_axi_wvalid;
        const bool active = controller.busy() || !coming_.empty() || !answers_.empty() ||
                            top_->m_axi_arvalid || address || beat;
        if (auto column = controller.end(t, address, beat)) move(*column, t);
        if (beat) copy_out(written_.data(), top_->m_axi_wdata, VDLA_PORT_BYTES);
        return active;
    }

    // The data of a column command: read now, and moved later; or written.
    void move(const banks::Column& column, int64_t t) {
        const uint32_t response = memory.response(column.address, VDLA_PORT_BYTES);
        uint8_t* const data = memory.data + column.address;
        if (!column.write) {
            Beat beat{t + controller.n.read_cycles, column.id, response, column.last, {}};
            if (response != kDecodeError) beat.data.assign(data, data + VDLA_PORT_BYTES);
            coming_.push_back(beat);
            return;
        }
        if (response == kOkay)
            std::memcpy(data, written_.data(), VDLA_PORT_BYTES);
        else
            write_response_ = response;
        if (!column.last) return;
        answers_.push_back({t + controller.n.write_cycles, write_response_});
        write_response_ = kOkay;
    }

    void deliver(int64_t t) {
        const bool due = !coming_.empty() && coming_.front().at <= t;
        top_->m_axi_rvalid = due;
        if (!due) return;
        const Beat& beat = coming_.front();
        if (!beat.data.empty()) copy_in(top_->m_axi_rdata, beat.data.data(), VDLA_PORT_BYTES);
        top_->m_axi_rresp = beat.response;
        top_->m_axi_rid = beat.id;
        top_->m_axi_rlast = beat.last;
        coming_.pop_front();
    }

    void answer(int64_t t) {
        bool due = !answers_.empty() && answers_.front().at <= t;
        top_->m_axi_bvalid = due;
        if (!due) return;
        top_->m_axi_bresp = answers_.front().response;
        top_->m_axi_bid = 0;
        answers_.pop_front();
    }

    void read_beat() {
        Burst& burst = reads_.front();
        uint32_t response = memory.response(burst.address, VDLA_PORT_BYTES);
        if (response != kDecodeError)
            copy_in(top_->m_axi_rdata, memory.data + burst.address, VDLA_PORT_BYTES);
        top_->m_axi_rresp = response;
        top_->m_axi_rid = burst.id;
        top_->m_axi_rlast = burst.left == 1;
        burst.address += VDLA_PORT_BYTES;
        if (--burst.left == 0) reads_.pop_front();
    }

    void write_beat(int64_t t) {
        if (write_opens_) {
            write_address_ = top_->m_axi_awaddr - memory.base;
            write_response_ = kOkay;
        }
        uint32_t response = memory.response(write_address_, VDLA_PORT_BYTES);
        if (response == kOkay)
            copy_out(memory.data + write_address_, top_->m_axi_wdata, VDLA_PORT_BYTES);
        else
            write_response_ = response;
        write_address_ += VDLA_PORT_BYTES;
        write_opens_ = top_->m_axi_wlast;
        if (write_opens_)
            answers_.push_back({t + 1 + static_cast<int64_t>(memory.latency), write_response_});
    }
};

}  // namespace

extern "C" {

Bench* vdla_new() { return new Bench; }
void vdla_free(Bench* bench) { delete bench; }

void vdla_memory(Bench* bench, uint8_t* data, uint64_t size, uint64_t base, uint64_t latency,
                 uint64_t interval, uint64_t error_from, uint64_t error_to) {
    bench->memory = {data, size, base, latency, interval, error_from, error_to, false};
}

// After vdla_memory: banks behind that latency and rate.
void vdla_banks(Bench* bench, const banks::Numbers* numbers) {
    bench->memory.has_banks = true;
    bench->controller.n = *numbers;
    bench->controller.latency = static_cast<int64_t>(bench->memory.latency);
    bench->controller.beat_cycles = static_cast<int64_t>(bench->memory.interval);
}

void vdla_events(Bench* bench, int engine, int64_t* starts, int64_t* finishes, int64_t capacity) {
    bench->starts[engine] = {starts, capacity, 0};
    bench->finishes[engine] = {finishes, capacity, 0};
}

void vdla_rewind(Bench* bench) { bench->rewind(); }
void vdla_write(Bench* bench, uint32_t address, uint32_t value) { bench->write(address, value); }
uint32_t vdla_read(Bench* bench, uint32_t address) { return bench->read(address); }
int vdla_run(Bench* bench, int64_t cycles) { return bench->run(cycles); }
int64_t vdla_cycles(Bench* bench) { return bench->now; }

int64_t vdla_count(Bench* bench, int engine, int finished) {
    return finished ? bench->finishes[engine].count : bench->starts[engine].count;
}

uint8_t* vdla_scratchpad(Bench* bench, int which, uint64_t* stride, uint64_t* depth) {
    return bench->scratchpad(which, stride, depth);
}

int vdla_trace(Bench* bench, const char* path) { return bench->open_trace(path); }
void vdla_trace_close(Bench* bench) { bench->close_trace(); }
}
