// The memory of a whole board, as a policy of runtime/rtl/bench.cpp: the SDRAM and its controller are in
// the design, so the bench moves no beats; it reaches the words, and the first rule that was broken.

#pragma once

#include <cstdint>

#include "names.h"

namespace {

class Memory {
  public:
    // The bench sees none of the beats on their way, so a program that waits for its SDRAM, with
    // refreshes and a whole burst before it, looks as if it stood still: that takes fewer cycles.
    static constexpr int64_t kPatience = 4096;

    explicit Memory(Model& top) : top_{top} {}

    bool ready() const { return top_.ready; }
    bool serve() { return false; }

    uint8_t* words(uint64_t* size) {
        *size = sizeof(top_.rootp->VDLA_WORDS);
        return reinterpret_cast<uint8_t*>(&top_.rootp->VDLA_WORDS[0]);
    }

    int broken() const { return top_.broken; }

  private:
    Model& top_;
};

}  // namespace

extern "C" {

uint8_t* vdla_words(Memory* memory, uint64_t* size) { return memory->words(size); }
int vdla_broken(Memory* memory) { return memory->broken(); }
}
