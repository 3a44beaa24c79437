// Recognizes a digit by the bundled network, from C++: see docs/packages.md, "In other languages".

#include <algorithm>
#include <cstdio>
#include <string_view>
#include <vector>

#include "digits.h"
#include "vdla.hpp"

const char IMAGE[] =
    "..####.."
    ".++++##."
    ".....##."
    "..++##+."
    ".######."
    "...##..."
    "..##...."
    "..##....";

int main() try {
  std::vector<float> pixels;
  for (const char c : std::string_view(IMAGE)) pixels.push_back(c == '#' ? 1.0f : c == '+' ? 0.5f : 0.0f);
  vdla::Network net(digits_open);
  net.write("image", pixels);
  net.run();
  const auto scores = net.output<float>("logits");
  const auto best = std::max_element(scores.begin(), scores.end()) - scores.begin();
  std::printf("digit %d\n", static_cast<int>(best));
  for (float score : scores) std::printf("%.9g\n", static_cast<double>(score));
} catch (const vdla::Error &error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
