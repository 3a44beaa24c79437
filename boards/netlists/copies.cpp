// A circuit of gates, registers and memories, with one bit of a word for each of 64 copies: 64 boards
// at once, each with its own serial line and its own memory's words.
//
// tables.py makes the tables. In a clock the serial lines are set, gates are evaluated in order, and
// the registers and memories of a clock take what is there; those of the fast clock once more.
//
// 1. Net 0 is low, net 1 high, the last net takes what nobody reads.
// 2. A memory is read as it was before the clock. A word that another port writes in that clock reads
//    as its complement: what a device gives then isn't known, so a circuit must not need it.
// 3. A memory that is `outside` is not part of a saved state.

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <vector>

namespace {

using Word = uint64_t;
constexpr int kCopies = 64;
constexpr int kDataBits = 8, kFrameBits = 10;
constexpr Word kAll = ~Word{0};
enum Kind { kSmallRam = 5, kMultiplier = 6 };
enum Mode { kBefore, kKeep, kThrough };  // of a port that reads what it writes

struct Gate {
    int32_t out, table, in[4];
};
struct Run {
    int32_t kind, first, count;
};
struct Register {
    int32_t clock, out, data, enable, reset, level;
};
struct SmallRam {
    int32_t clock, enable, out[4], read[4], write[4], data[4];
};
struct Multiplier {
    int32_t sign_a, sign_b, a[18], b[18], out[36];
};

// Rows of bits to columns: bit j of row i becomes bit i of row j.
void transpose(Word m[kCopies]) {
    Word mask = 0x00000000FFFFFFFFull;
    for (int j = 32; j; j >>= 1, mask ^= mask << j) {
        for (int k = 0; k < kCopies; k = ((k | j) + 1) & ~j) {
            const Word t = ((m[k] >> j) ^ m[k | j]) & mask;
            m[k] ^= t << j;
            m[k | j] ^= t;
        }
    }
}

class Port {
  public:
    int clock, mode, enable, chunk;
    std::vector<int32_t> address, writes, data, out;
    Word rows[kCopies];  // per copy: the address, the writes and the data of this clock
    Word enabled = 0, writing = 0;

    const int32_t* read(const int32_t* from) {
        clock = *from++, mode = *from++, enable = *from++, chunk = *from++;
        for (auto* nets : {&address, &writes, &data, &out}) {
            const int count = *from++;
            nets->assign(from, from + count);
            from += count;
        }
        return from;
    }

    // Takes what is at the inputs; false if nothing happens in any copy.
    bool sample(const Word* nets) {
        enabled = nets[enable];
        writing = 0;
        for (int32_t net : writes) writing |= nets[net];
        writing &= enabled;
        if (!enabled || (out.empty() && !writing)) return false;
        int row = 0;
        for (int32_t net : address) rows[row++] = nets[net];
        for (int32_t net : writes) rows[row++] = nets[net];
        if (writing) {
            for (int32_t net : data) rows[row++] = nets[net];
        }
        while (row < kCopies) rows[row++] = 0;
        transpose(rows);
        return true;
    }

    Word row(int copy) const { return rows[copy] & ((Word{1} << address.size()) - 1); }

    // The bits that a copy writes, and what it writes there.
    Word mask(int copy) const {
        const Word on = rows[copy] >> address.size();
        Word result = 0;
        for (size_t i = 0; i < writes.size(); ++i) {
            if (on >> i & 1) result |= ((Word{1} << chunk) - 1) << (i * chunk);
        }
        return result;
    }
    Word value(int copy) const { return rows[copy] >> (address.size() + writes.size()); }
};

class Ram {
  public:
    int width, bits, bytes, outside;
    std::vector<Port> ports;
    uint8_t* words = nullptr;

    const int32_t* read(const int32_t* from) {
        width = *from++, bits = *from++, bytes = *from++, outside = *from++;
        ports.resize(*from++);
        for (Port& port : ports) from = port.read(from);
        words = static_cast<uint8_t*>(std::calloc(kCopies, copy_bytes()));
        const int count = *from++;  // words that aren't zero: row, low half, high half
        for (int i = 0; i < count; ++i, from += 3) {
            const Word word = uint32_t(from[1]) | Word(uint32_t(from[2])) << 32;
            for (int copy = 0; copy < kCopies; ++copy) store(copy, from[0], word);
        }
        return from;
    }

    size_t copy_bytes() const { return (size_t{1} << bits) * bytes; }
    uint8_t* at(int copy, Word row) const { return words + copy * copy_bytes() + row * bytes; }
    Word load(int copy, Word row) const {
        Word result = 0;
        std::memcpy(&result, at(copy, row), bytes);
        return result;
    }
    void store(int copy, Word row, Word word) { std::memcpy(at(copy, row), &word, bytes); }

    // Takes what is at the inputs of the ports whose clock is among `clocks`.
    void sample(int clocks, const Word* nets) {
        active_.clear();
        for (Port& port : ports) {
            if (clocks >> port.clock & 1 && port.sample(nets)) active_.push_back(&port);
        }
    }

    // Reads and writes of what was sampled.
    void step(Word* nets) {
        for (Port* port : active_) {
            if (!port->out.empty()) read_out(*port, nets);
        }
        for (Port* port : active_) {
            for (Word left = port->writing; left; left &= left - 1) {
                const int copy = __builtin_ctzll(left);
                const Word row = port->row(copy), mask = port->mask(copy);
                store(copy, row, (load(copy, row) & ~mask) | (port->value(copy) & mask));
            }
        }
    }

  private:
    std::vector<Port*> active_;

    void read_out(const Port& port, Word* nets) {
        Word read[kCopies] = {};
        Word keeps = ~port.enabled;
        if (port.mode == kKeep) keeps |= port.writing;
        for (Word left = ~keeps; left; left &= left - 1) {
            const int copy = __builtin_ctzll(left);
            read[copy] = load(copy, port.row(copy));
            if (port.mode == kThrough && port.writing >> copy & 1) {
                const Word mask = port.mask(copy);
                read[copy] = (read[copy] & ~mask) | (port.value(copy) & mask);
            }
            for (const Port* other : active_) {
                if (other != &port && other->writing >> copy & 1 &&
                    other->row(copy) == port.row(copy)) {
                    read[copy] ^= other->mask(copy);
                }
            }
        }
        transpose(read);
        for (size_t i = 0; i < port.out.size(); ++i) {
            Word& net = nets[port.out[i]];
            net = (net & keeps) | (read[i] & ~keeps);
        }
    }
};

// The lines of 64 boards. All are spoken to in the same clocks; each answers in its own.
class Lines {
  public:
    int32_t to_board = 0, from_board = 0, divisor = 1;

    void send(const uint8_t* bytes, int count) {
        sent_.assign(bytes, bytes + size_t(count) * kCopies);
        size_ = count;
        byte_ = bit_ = clock_ = 0;
    }

    // The word on the lines to the boards in this clock.
    Word speak() {
        if (byte_ == size_) return kAll;
        if (clock_ == 0) {
            word_ = bit_ == 0 ? 0 : kAll;
            if (0 < bit_ && bit_ <= kDataBits) {
                word_ = 0;
                for (int copy = 0; copy < kCopies; ++copy) {
                    const uint8_t byte = sent_[size_t(copy) * size_ + byte_];
                    word_ |= Word(byte >> (bit_ - 1) & 1) << copy;
                }
            }
        }
        const Word result = word_;
        if (++clock_ == divisor) {
            clock_ = 0;
            if (++bit_ == kFrameBits) bit_ = 0, ++byte_;
        }
        return result;
    }

    void hear(Word line) {
        if (line == kAll && !hearing_) return;
        for (Word left = hearing_ | ~line; left; left &= left - 1) {
            const int copy = __builtin_ctzll(left);
            Ear& ear = ears_[copy];
            const bool level = line >> copy & 1;
            if (!(hearing_ >> copy & 1)) {
                hearing_ |= Word{1} << copy;
                ear.bits = kFrameBits;
                ear.wait = divisor / 2;
            }
            if (ear.wait-- > 0) continue;
            ear.wait = divisor - 1;
            if (--ear.bits) {
                ear.byte = uint8_t(ear.byte >> 1 | (level ? 0x80 : 0));
            } else {
                hearing_ &= ~(Word{1} << copy);
                if (level) ear.heard.push_back(ear.byte);
            }
        }
    }

    int receive(int copy, uint8_t* bytes, int most) {
        auto& heard = ears_[copy].heard;
        int count = 0;
        for (; count < most && !heard.empty(); heard.pop_front()) bytes[count++] = heard.front();
        return count;
    }

    bool all_have(size_t count, Word copies) const {
        for (; copies; copies &= copies - 1) {
            if (ears_[__builtin_ctzll(copies)].heard.size() < count) return false;
        }
        return true;
    }

    void forget() {
        hearing_ = 0;
        size_ = byte_ = 0;
        for (Ear& ear : ears_) ear = Ear{};
    }

  private:
    struct Ear {
        std::deque<uint8_t> heard;
        int bits = 0, wait = 0;
        uint8_t byte = 0;
    };
    std::vector<uint8_t> sent_;
    int size_ = 0, byte_ = 0, bit_ = 0, clock_ = 0;
    Word word_ = kAll, hearing_ = 0;
    Ear ears_[kCopies];
};

template <class T>
std::vector<T> copied(const int32_t* from, int count) {
    const T* begin = reinterpret_cast<const T*>(from);
    return {begin, begin + count};
}

class Boards {
  public:
    std::vector<Word> nets;
    std::vector<Ram> rams;
    Lines lines;

    Boards(const int32_t* counts, const int32_t* runs, const int32_t* gates,
           const int32_t* registers, const int32_t* small_rams, const int32_t* multipliers,
           const int32_t* rams_from, const Word* initial, const uint16_t* small_words)
        : nets(initial, initial + counts[0]),
          rams(counts[6]),
          runs_{copied<Run>(runs, counts[1])},
          gates_{copied<Gate>(gates, counts[2])},
          registers_{copied<Register>(registers, counts[3])},
          small_rams_{copied<SmallRam>(small_rams, counts[4])},
          multipliers_{copied<Multiplier>(multipliers, counts[5])},
          next_(counts[3]),
          small_(size_t(counts[4]) * kSmall) {
        for (Ram& ram : rams) rams_from = ram.read(rams_from);
        for (size_t i = 0; i < small_.size(); ++i) {  // bit b of word w of RAM r: 64 r + 4 w + b
            small_[i] = small_words[i / 4] >> (i % 4) & 1 ? kAll : 0;
        }
        lines.to_board = counts[7], lines.from_board = counts[8], lines.divisor = counts[9];
        ratio_ = counts[10];
    }

    ~Boards() {
        for (Ram& ram : rams) std::free(ram.words);
    }

    void clock() {
        nets[lines.to_board] = lines.speak();
        evaluate();
        lines.hear(nets[lines.from_board]);
        step(kEveryClock);
        for (int more = 1; more < ratio_; ++more) {
            evaluate();
            step(kFastClock);
        }
    }

    void evaluate() {
        for (const Run& run : runs_) {
            const Gate* gate = &gates_[run.kind <= 4 ? run.first : 0];
            switch (run.kind) {
                case 1:
                    for (int i = 0; i < run.count; ++i) one(gate[i]);
                    break;
                case 2:
                    for (int i = 0; i < run.count; ++i) two(gate[i]);
                    break;
                case 3:
                    for (int i = 0; i < run.count; ++i) three(gate[i]);
                    break;
                case 4:
                    for (int i = 0; i < run.count; ++i) four(gate[i]);
                    break;
                case kSmallRam:
                    for (int i = 0; i < run.count; ++i) small(run.first + i);
                    break;
                case kMultiplier:
                    for (int i = 0; i < run.count; ++i) multiply(multipliers_[run.first + i]);
                    break;
            }
        }
    }

    void save() { saved_ = state(); }

    void restore() {
        nets = saved_.nets;
        small_ = saved_.small;
        for (size_t i = 0; i < rams.size(); ++i) {
            if (!rams[i].outside) {
                std::memcpy(rams[i].words, saved_.rams[i].data(), saved_.rams[i].size());
            }
        }
        lines.forget();
    }

  private:
    static constexpr int kSmall = 64;                     // bits of a small RAM: 16 words of 4
    static constexpr int kEveryClock = 3, kFastClock = 2;  // clock 0 is the core's, 1 the fast one

    struct State {
        std::vector<Word> nets, small;
        std::vector<std::vector<uint8_t>> rams;
    };

    std::vector<Run> runs_;
    std::vector<Gate> gates_;
    std::vector<Register> registers_;
    std::vector<SmallRam> small_rams_;
    std::vector<Multiplier> multipliers_;
    std::vector<Word> next_, small_;
    State saved_;
    int ratio_ = 1;

    State state() const {
        State result{nets, small_, {}};
        for (const Ram& ram : rams) {
            const size_t size = ram.outside ? 0 : ram.copy_bytes() * kCopies;
            result.rams.emplace_back(ram.words, ram.words + size);
        }
        return result;
    }

    // One input's choice between two bits of a table.
    static Word pick(int table, Word a) {
        static constexpr Word low[4] = {0, kAll, 0, kAll}, change[4] = {0, kAll, kAll, 0};
        return low[table & 3] ^ (a & change[table & 3]);
    }
    static Word mux(Word s, Word a, Word b) { return a ^ (s & (a ^ b)); }
    static Word pick2(int table, Word a, Word b) {
        return mux(b, pick(table, a), pick(table >> 2, a));
    }
    static Word pick3(int table, Word a, Word b, Word c) {
        return mux(c, pick2(table, a, b), pick2(table >> 4, a, b));
    }
    void one(const Gate& g) { nets[g.out] = pick(g.table, nets[g.in[0]]); }
    void two(const Gate& g) { nets[g.out] = pick2(g.table, nets[g.in[0]], nets[g.in[1]]); }
    void three(const Gate& g) {
        nets[g.out] = pick3(g.table, nets[g.in[0]], nets[g.in[1]], nets[g.in[2]]);
    }
    void four(const Gate& g) {
        const Word a = nets[g.in[0]], b = nets[g.in[1]], c = nets[g.in[2]];
        nets[g.out] = mux(nets[g.in[3]], pick3(g.table, a, b, c), pick3(g.table >> 8, a, b, c));
    }

    void small(int index) {
        const SmallRam& ram = small_rams_[index];
        const Word* words = &small_[size_t(index) * kSmall];
        const Word a = nets[ram.read[0]], b = nets[ram.read[1]];
        const Word c = nets[ram.read[2]], d = nets[ram.read[3]];
        for (int bit = 0; bit < 4; ++bit) {
            Word level[8];
            for (int i = 0; i < 8; ++i) level[i] = mux(a, words[8 * i + bit], words[8 * i + 4 + bit]);
            for (int i = 0; i < 4; ++i) level[i] = mux(b, level[2 * i], level[2 * i + 1]);
            for (int i = 0; i < 2; ++i) level[i] = mux(c, level[2 * i], level[2 * i + 1]);
            nets[ram.out[bit]] = mux(d, level[0], level[1]);
        }
    }

    void write_small(int index) {
        const SmallRam& ram = small_rams_[index];
        const Word on = nets[ram.enable];
        if (!on) return;
        Word* words = &small_[size_t(index) * kSmall];
        for (int row = 0; row < 16; ++row) {
            Word here = on;
            for (int bit = 0; bit < 4; ++bit) {
                here &= row >> bit & 1 ? nets[ram.write[bit]] : ~nets[ram.write[bit]];
            }
            if (!here) continue;
            for (int bit = 0; bit < 4; ++bit) {
                Word& word = words[4 * row + bit];
                word = mux(here, word, nets[ram.data[bit]]);
            }
        }
    }

    void multiply(const Multiplier& m) {
        Word rows[kCopies] = {};
        for (int i = 0; i < 18; ++i) rows[i] = nets[m.a[i]], rows[18 + i] = nets[m.b[i]];
        rows[36] = nets[m.sign_a], rows[37] = nets[m.sign_b];
        transpose(rows);
        for (Word& row : rows) {
            int64_t a = row & 0x3FFFF, b = row >> 18 & 0x3FFFF;
            if (row >> 36 & 1 && a >> 17) a -= 1 << 18;
            if (row >> 37 & 1 && b >> 17) b -= 1 << 18;
            row = Word(a * b);
        }
        transpose(rows);
        for (int i = 0; i < 36; ++i) nets[m.out[i]] = rows[i];
    }

    // An edge of the clocks in a set: all that they move takes what was there before it.
    void step(int clocks) {
        for (size_t i = 0; i < registers_.size(); ++i) {
            const Register& r = registers_[i];
            const Word held = nets[r.out], reset = nets[r.reset];
            const Word on = clocks >> r.clock & 1 ? kAll : 0;
            const Word next = mux(reset, mux(nets[r.enable], held, nets[r.data]), r.level ? kAll : 0);
            next_[i] = mux(on, held, next);
        }
        for (size_t i = 0; i < small_rams_.size(); ++i) {
            if (clocks >> small_rams_[i].clock & 1) write_small(int(i));
        }
        for (Ram& ram : rams) ram.sample(clocks, nets.data());
        for (Ram& ram : rams) ram.step(nets.data());
        for (size_t i = 0; i < registers_.size(); ++i) nets[registers_[i].out] = next_[i];
    }
};

}  // namespace

extern "C" {

void* vdla_copies_new(const int32_t* counts, const int32_t* runs, const int32_t* gates,
                     const int32_t* registers, const int32_t* small_rams,
                     const int32_t* multipliers, const int32_t* rams, const uint64_t* initial,
                     const uint16_t* small_words) {
    return new Boards{counts,      runs, gates,   registers,  small_rams,
                      multipliers, rams, initial, small_words};
}
void vdla_copies_free(Boards* boards) { delete boards; }
void vdla_copies_save(Boards* boards) { boards->save(); }
void vdla_copies_restore(Boards* boards) { boards->restore(); }
void vdla_copies_set(Boards* boards, int32_t net, uint64_t word) { boards->nets[net] = word; }
uint64_t vdla_copies_get(Boards* boards, int32_t net) { return boards->nets[net]; }
void vdla_copies_evaluate(Boards* boards) { boards->evaluate(); }
uint8_t* vdla_copies_words(Boards* boards, int32_t ram, int32_t copy) {
    return boards->rams[ram].at(copy, 0);
}
void vdla_copies_send(Boards* boards, const uint8_t* bytes, int32_t count) {
    boards->lines.send(bytes, count);
}
int32_t vdla_copies_receive(Boards* boards, int32_t copy, uint8_t* bytes, int32_t most) {
    return boards->lines.receive(copy, bytes, most);
}
// Lets clocks pass, until so many bytes have come from each of some copies; the clocks that passed.
int64_t vdla_copies_run(Boards* boards, int64_t clocks, int32_t bytes, uint64_t copies) {
    int64_t passed = 0;
    while (passed < clocks && !(bytes && boards->lines.all_have(size_t(bytes), copies))) {
        boards->clock();
        ++passed;
    }
    return passed;
}
}
