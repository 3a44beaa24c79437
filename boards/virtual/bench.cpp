// A virtual board at the end of a pseudo-terminal: bytes become the line's bits and back.
//
//   board FD DIVISOR
//
// FD is the terminal's controlling end, DIVISOR the clocks to a bit. While the core is at rest and
// nobody speaks, time stands still until a byte comes. Ends when the terminal's other end is closed
// for good, or with exit code 3 when the SDRAM's model says that a rule was broken. names.h calls the
// SDRAM's clock VDLA_FAST where it is twice the board's: it rises with that and in its middle.

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <memory>
#include <poll.h>
#include <unistd.h>

#include "Vboard.h"
#include "names.h"
#include "verilated.h"

namespace {

constexpr int kDataBits = 8, kFrameBits = 10;
constexpr int64_t kSilence = 4'000'000;  // clocks: more than any pause of the link's rules
constexpr int64_t kLook = 64;            // clocks between looks at the terminal
constexpr int kBroken = 3;

class Board {
  public:
    Board(int fd, int divisor) : fd_{fd}, divisor_{divisor}, top_{new Vboard{&context_}} {
        top_->rst = 1;
        top_->rx = 1;
        for (int i = 0; i < 4; ++i) tick();
        top_->rst = 0;
    }

    int run() {
        while (true) {
            if (now_ % kLook == 0 && !listen()) return 0;
            speak();
            tick();
            hear();
            if (top_->broken) {
                std::fprintf(stderr, "virtual board: the SDRAM's rule %d was broken in cycle %lld\n",
                             int(top_->broken), static_cast<long long>(now_));
                return kBroken;
            }
        }
    }

  private:
    VerilatedContext context_;
    int fd_;
    int64_t divisor_;
    std::unique_ptr<Vboard> top_;
    int64_t now_ = 0, latest_ = 0;  // the cycle, and that of the latest byte
    std::deque<uint8_t> waiting_;
    uint32_t sending_ = 0;  // what is left of the byte on its way to the board
    int send_left_ = 0, receive_left_ = 0;
    int64_t send_at_ = 0, receive_at_ = 0;
    uint8_t received_ = 0;

    void tick() {
        top_->clk = 0;
        set_fast(0);
        top_->eval();
#ifdef VDLA_FAST
        for (int level : {1, 0}) {
            set_fast(level);
            top_->eval();
        }
#endif
        top_->clk = 1;
        set_fast(1);
        top_->eval();
        ++now_;
    }

    void set_fast([[maybe_unused]] int level) {
#ifdef VDLA_FAST
        top_->VDLA_FAST = level;
#endif
    }

    // Takes what the host has sent; false when there is no host any more.
    bool listen() {
        const bool rests = !top_->running && waiting_.empty() && !send_left_ && !receive_left_ &&
                           now_ - latest_ > kSilence;
        pollfd watched{fd_, POLLIN, 0};
        if (poll(&watched, 1, rests ? -1 : 0) <= 0) return true;
        if (!(watched.revents & POLLIN)) return false;
        uint8_t bytes[4096];
        const ssize_t count = read(fd_, bytes, sizeof bytes);
        if (count <= 0) return count < 0 && errno == EINTR;
        waiting_.insert(waiting_.end(), bytes, bytes + count);
        latest_ = now_;
        return true;
    }

    // The line to the board: a start bit, the byte, a stop bit.
    void speak() {
        if (send_left_ == 0) {
            top_->rx = 1;
            if (waiting_.empty()) return;
            sending_ = (1u << (kDataBits + 1)) | (uint32_t{waiting_.front()} << 1);
            waiting_.pop_front();
            send_left_ = kFrameBits;
            send_at_ = now_;
            latest_ = now_;
        }
        top_->rx = sending_ & 1;
        if (now_ + 1 - send_at_ >= divisor_) {
            sending_ >>= 1;
            --send_left_;
            send_at_ = now_ + 1;
        }
    }

    // The line from the board, each bit in its middle.
    void hear() {
        if (receive_left_ == 0) {
            if (top_->tx) return;
            receive_left_ = kFrameBits;
            receive_at_ = now_ + divisor_ / 2;
        }
        if (now_ < receive_at_) return;
        receive_at_ += divisor_;
        if (--receive_left_ == 0) {
            latest_ = now_;
            if (top_->tx && write(fd_, &received_, 1) != 1) std::exit(0);
        } else {
            received_ = static_cast<uint8_t>((received_ >> 1) | (top_->tx ? 0x80 : 0));
        }
    }
};

}  // namespace

int main(int count, char** arguments) {
    if (count != 3) {
        std::fprintf(stderr, "usage: board FD DIVISOR\n");
        return 2;
    }
    return Board{std::atoi(arguments[1]), std::atoi(arguments[2])}.run();
}
