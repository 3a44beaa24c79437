// A controller with a DRAM of banks behind it: docs/timing.md, section 12, written a second time; the
// simulator's is sim/timing/banks.py.
//
// `end` carries a cycle out by what the cycle before left: `now` and `next` are copied before either
// is written. Data and answers are the bench's.

#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "names.h"

namespace banks {

constexpr int64_t kMostDue = 8;  // refreshes

// The numbers of vdla.isa.memory.Banks, in its order.
struct Numbers {
#define VDLA_NUMBER(name) int64_t name = 0;
    VDLA_BANK_NUMBERS
#undef VDLA_NUMBER
};

enum class Stage { kCheck, kClose, kOpen, kReady };

struct Request {
    bool write;
    uint32_t id;
    uint64_t address;  // of the next beat
    uint32_t left;     // beats
    int64_t from = 0;  // the cycle from which it may be taken
    Stage stage = Stage::kCheck;
};

struct Bank {
    std::optional<uint64_t> row;  // that is open
    int64_t column = 0, precharge = 0, activate = 0;  // cycles from which these commands may come
};

// A column command, for whoever has the data.
struct Column {
    bool write, last;
    uint32_t id;
    uint64_t address;
};

class Controller {
  public:
    Numbers n;
    int64_t beat_cycles = 1, latency = 0;

    // The state before cycle 0 of a program.
    void reset() {
        *this = Controller{n, beat_cycles, latency};
        bank_.resize(static_cast<size_t>(n.count));
    }

    bool address_room() const { return !address_; }
    bool beat_room() const { return !beat_; }

    bool busy() const { return now_ || next_ || address_ || beat_ || !reads_.empty(); }

    void accept_read(uint32_t id, uint64_t address, uint32_t beats, int64_t t) {
        reads_.push_back({false, id, address, beats, t + 1 + latency});
    }

    // Carries out cycle t, in which a write's address and a beat may have come; the column command
    // of this cycle, if there is one.
    std::optional<Column> end(int64_t t, std::optional<Request> address, bool beat) {
        if (t > 0 && t % n.refresh_interval == 0) due_ = std::min(due_ + 1, kMostDue);
        const std::optional<Request> now = now_, next = next_;
        const Request* taken = !next && (n.requests > 1 || !now) ? wanted(t) : nullptr;
        const bool asked = wanted(t) != nullptr;
        std::optional<Column> column;
        if (t >= n.start_cycles) column = work(t, now, next, asked);
        if (taken) take(*taken);
        if (address) address_ = address;
        if (column && column->write) beat_ = false;
        if (beat) beat_ = true;
        return column;
    }

    Controller() = default;

  private:
    enum class Phase { kNormal, kClosing, kRefreshing };

    Controller(const Numbers& numbers, int64_t cycles, int64_t way)
        : n{numbers}, beat_cycles{cycles}, latency{way} {}

    std::deque<Request> reads_;
    std::optional<Request> address_, now_, next_;
    bool beat_ = false, wrote_ = false;  // the register for beats; the last request taken
    std::vector<Bank> bank_;
    int64_t other_row_ = 0, any_column_ = 0, read_ = 0, write_ = 0;
    int64_t due_ = 0;
    Phase phase_ = Phase::kNormal;

    size_t bank_of(const Request& r) const {
        return static_cast<size_t>(r.address / static_cast<uint64_t>(n.row_bytes) %
                                   static_cast<uint64_t>(n.count));
    }
    uint64_t row_of(const Request& r) const {
        return r.address / static_cast<uint64_t>(n.row_bytes * n.count);
    }

    // The request that may be taken in this cycle: reads and writes take turns.
    const Request* wanted(int64_t t) const {
        const bool read = !reads_.empty() && reads_.front().from <= t;
        if (read && (!address_ || wrote_)) return &reads_.front();
        return address_ ? &*address_ : nullptr;
    }

    void take(const Request& request) {
        next_ = request;
        wrote_ = request.write;
        if (wrote_)
            address_.reset();
        else
            reads_.pop_front();
    }

    std::optional<Column> work(int64_t t, const std::optional<Request>& now,
                               const std::optional<Request>& next, bool asked) {
        const Phase phase = phase_;
        if (next && next->stage == Stage::kCheck) check_next(now);
        if (now && now->stage == Stage::kCheck) now_->stage = looked_up(*now);
        std::optional<Column> column;
        if (now && now->stage == Stage::kReady && may_move(t))
            column = move(t);
        else if (now && (now->stage == Stage::kClose || now->stage == Stage::kOpen))
            prepare(*now_, t);
        else if (phase == Phase::kNormal && next &&
                 (next->stage == Stage::kClose || next->stage == Stage::kOpen))
            prepare(*next_, t);
        if (phase != Phase::kNormal) {
            refresh(t, now.has_value());
            return column;
        }
        if (next && !now_) {
            now_ = next_;
            next_.reset();
        }
        const bool idle = !now && !next && !asked;
        if (due_ > n.refreshes_put_off || (due_ > 0 && idle)) phase_ = Phase::kClosing;
        return column;
    }

    Stage looked_up(const Request& r) const {
        const auto& open = bank_[bank_of(r)].row;
        if (!open) return Stage::kOpen;
        return *open == row_of(r) ? Stage::kReady : Stage::kClose;
    }

    // `next` leaves the bank of `now` to it.
    void check_next(const std::optional<Request>& now) {
        if (!now || bank_of(*now) != bank_of(*next_))
            next_->stage = looked_up(*next_);
        else if (now->stage == Stage::kReady && row_of(*now) == row_of(*next_))
            next_->stage = Stage::kReady;
    }

    bool may_move(int64_t t) const {
        if (t < any_column_ || t < bank_[bank_of(*now_)].column) return false;
        return now_->write ? beat_ && t >= write_ : t >= read_;
    }

    Column move(int64_t t) {
        Request& r = *now_;
        Bank& bank = bank_[bank_of(r)];
        const Column column{r.write, r.left == 1, r.id, r.address};
        any_column_ = t + beat_cycles;
        bank.precharge = std::max(bank.precharge, t + (r.write ? n.write_recovery : n.read_recovery));
        if (r.write)
            read_ = t + n.write_to_read;
        else
            write_ = t + n.read_to_write;
        r.address += VDLA_PORT_BYTES;
        if (--r.left == 0) {
            now_.reset();
        } else if (r.address % static_cast<uint64_t>(n.row_bytes) == 0) {
            r.stage = Stage::kCheck;
            if (next_) next_->stage = Stage::kCheck;
        }
        return column;
    }

    // PRECHARGE or ACTIVATE for a request, if its bank may have it.
    void prepare(Request& r, int64_t t) {
        Bank& bank = bank_[bank_of(r)];
        if (r.stage == Stage::kClose) {
            if (t < bank.precharge) return;
            close(bank, t);
            r.stage = Stage::kOpen;
        } else if (t >= bank.activate && t >= other_row_) {
            bank.row = row_of(r);
            bank.column = t + n.activate;
            bank.precharge = std::max(bank.precharge, t + n.row_open);
            bank.activate = t + n.row_cycle;
            other_row_ = t + n.other_row;
            r.stage = Stage::kReady;
        }
    }

    void close(Bank& bank, int64_t t) {
        bank.row.reset();
        bank.activate = std::max(bank.activate, t + n.precharge);
    }

    // A refresh that is on its way: closes every bank once `now` is empty, then refreshes.
    void refresh(int64_t t, bool moves) {
        if (phase_ == Phase::kClosing) {
            if (moves) return;
            for (const Bank& bank : bank_)
                if (t < bank.precharge) return;
            for (Bank& bank : bank_) close(bank, t);
            phase_ = Phase::kRefreshing;
            return;
        }
        for (const Bank& bank : bank_)
            if (t < bank.activate || t < other_row_) return;
        for (Bank& bank : bank_) bank.activate = bank.precharge = t + n.refresh_cycles;
        --due_;
        phase_ = Phase::kNormal;
        if (next_) next_->stage = Stage::kCheck;
    }
};

}  // namespace banks
