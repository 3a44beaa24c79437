// The memory behind the core's AXI4 port, and the bench's part of that port: a policy of bench.cpp.
//
// It is the contract of docs/timing.md, section 2, written a second time: the simulator's is
// sim/timing/memory.py. One with banks (section 12) is in banks.h.

#pragma once

#include <cstdint>
#include <cstring>
#include <deque>
#include <optional>
#include <vector>

#include "banks.h"
#include "names.h"

namespace {

constexpr uint32_t kOkay = 0, kSlaveError = 2, kDecodeError = 3;

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
struct Contents {
    uint8_t* data = nullptr;
    uint64_t size = 0, base = 0;
    int64_t latency = 0, interval = 1;
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

class Memory {
  public:
    // Every beat on its way is seen here, and counts as activity. What is left is inside the core: an
    // instruction reaches its engine in fewer cycles than these.
    static constexpr int64_t kPatience = 64;

    explicit Memory(Model& top) : top_{top} {}

    void attach(const Contents& contents) { is_ = contents; }

    void attach_banks(const banks::Numbers& numbers) {
        is_.has_banks = true;
        controller_.n = numbers;
        controller_.latency = is_.latency;
        controller_.beat_cycles = is_.interval;
    }

    bool ready() const { return true; }

    // A cycle; true when anything is under way.
    bool serve() {
        const bool begins = top_.trace_running && !ran_;
        ran_ = top_.trace_running;
        if (begins) begin();
        const int64_t t = cycle_++;
        top_.m_axi_arready = 1;
        return is_.has_banks ? serve_banks(t) : serve_plain(t);
    }

  private:
    Model& top_;
    Contents is_;
    banks::Controller controller_;
    int64_t cycle_ = 0;  // since a program began
    bool ran_ = false;   // in the cycle before
    std::deque<Burst> reads_;
    std::deque<Answer> answers_;
    uint64_t write_address_ = 0;
    uint32_t write_response_ = kOkay;
    bool write_opens_ = true, served_write_ = false;
    int64_t bus_free_ = 0;
    std::deque<Beat> coming_;
    std::vector<uint8_t> written_ = std::vector<uint8_t>(VDLA_PORT_BYTES);  // the register for beats

    // A program begins in cycle 0, behind a port at rest.
    void begin() {
        cycle_ = bus_free_ = 0;
        served_write_ = false;
        write_opens_ = true;
        write_response_ = kOkay;  // a memory of the other kind may have left an error
        controller_.reset();
    }

    bool serve_plain(int64_t t) {
        if (top_.m_axi_arvalid)
            reads_.push_back({top_.m_axi_araddr - is_.base, top_.m_axi_arlen + 1u, top_.m_axi_arid,
                              t + 1 + is_.latency});
        answer(t);
        bool read_waits = !reads_.empty() && reads_.front().ready <= t && t >= bus_free_;
        bool write_waits = top_.m_axi_wvalid && t >= bus_free_;
        bool reads = read_waits && (!write_waits || served_write_);
        bool writes = write_waits && !reads;
        if (reads || writes) {
            bus_free_ = t + is_.interval;
            served_write_ = writes;
        }
        top_.m_axi_rvalid = reads;
        if (reads) read_beat();
        top_.m_axi_awready = writes;
        top_.m_axi_wready = writes;
        if (writes) write_beat(t);
        return !reads_.empty() || !answers_.empty() || writes || top_.m_axi_arvalid;
    }

    bool serve_banks(int64_t t) {
        if (top_.m_axi_arvalid)
            controller_.accept_read(top_.m_axi_arid, top_.m_axi_araddr - is_.base,
                                    top_.m_axi_arlen + 1u, t);
        answer(t);
        deliver(t);
        top_.m_axi_awready = controller_.address_room();
        top_.m_axi_wready = controller_.beat_room();
        std::optional<banks::Request> address;
        if (top_.m_axi_awready && top_.m_axi_awvalid)
            address = banks::Request{true, 0, top_.m_axi_awaddr - is_.base, top_.m_axi_awlen + 1u};
        const bool beat = top_.m_axi_wready && top_.m_axi_wvalid;
        const bool active = controller_.busy() || !coming_.empty() || !answers_.empty() ||
                            top_.m_axi_arvalid || address || beat;
        if (auto column = controller_.end(t, address, beat)) move(*column, t);
        if (beat) copy_out(written_.data(), top_.m_axi_wdata, VDLA_PORT_BYTES);
        return active;
    }

    // The data of a column command: read now, and moved later; or written.
    void move(const banks::Column& column, int64_t t) {
        const uint32_t response = is_.response(column.address, VDLA_PORT_BYTES);
        uint8_t* const data = is_.data + column.address;
        if (!column.write) {
            Beat beat{t + controller_.n.read_cycles, column.id, response, column.last, {}};
            if (response != kDecodeError) beat.data.assign(data, data + VDLA_PORT_BYTES);
            coming_.push_back(beat);
            return;
        }
        if (response == kOkay)
            std::memcpy(data, written_.data(), VDLA_PORT_BYTES);
        else
            write_response_ = response;
        if (!column.last) return;
        answers_.push_back({t + controller_.n.write_cycles, write_response_});
        write_response_ = kOkay;
    }

    void deliver(int64_t t) {
        const bool due = !coming_.empty() && coming_.front().at <= t;
        top_.m_axi_rvalid = due;
        if (!due) return;
        const Beat& beat = coming_.front();
        if (!beat.data.empty()) copy_in(top_.m_axi_rdata, beat.data.data(), VDLA_PORT_BYTES);
        top_.m_axi_rresp = beat.response;
        top_.m_axi_rid = beat.id;
        top_.m_axi_rlast = beat.last;
        coming_.pop_front();
    }

    void answer(int64_t t) {
        bool due = !answers_.empty() && answers_.front().at <= t;
        top_.m_axi_bvalid = due;
        if (!due) return;
        top_.m_axi_bresp = answers_.front().response;
        top_.m_axi_bid = 0;
        answers_.pop_front();
    }

    void read_beat() {
        Burst& burst = reads_.front();
        uint32_t response = is_.response(burst.address, VDLA_PORT_BYTES);
        if (response != kDecodeError)
            copy_in(top_.m_axi_rdata, is_.data + burst.address, VDLA_PORT_BYTES);
        top_.m_axi_rresp = response;
        top_.m_axi_rid = burst.id;
        top_.m_axi_rlast = burst.left == 1;
        burst.address += VDLA_PORT_BYTES;
        if (--burst.left == 0) reads_.pop_front();
    }

    void write_beat(int64_t t) {
        if (write_opens_) {
            write_address_ = top_.m_axi_awaddr - is_.base;
            write_response_ = kOkay;
        }
        uint32_t response = is_.response(write_address_, VDLA_PORT_BYTES);
        if (response == kOkay)
            copy_out(is_.data + write_address_, top_.m_axi_wdata, VDLA_PORT_BYTES);
        else
            write_response_ = response;
        write_address_ += VDLA_PORT_BYTES;
        write_opens_ = top_.m_axi_wlast;
        if (write_opens_) answers_.push_back({t + 1 + is_.latency, write_response_});
    }
};

}  // namespace

extern "C" {

void vdla_attach(Memory* memory, uint8_t* data, uint64_t size, uint64_t base, uint64_t latency,
                 uint64_t interval, uint64_t error_from, uint64_t error_to) {
    memory->attach({data, size, base, static_cast<int64_t>(latency),
                    static_cast<int64_t>(interval), error_from, error_to});
}

// After vdla_attach: banks behind that latency and rate.
void vdla_banks(Memory* memory, const banks::Numbers* numbers) { memory->attach_banks(*numbers); }
}
