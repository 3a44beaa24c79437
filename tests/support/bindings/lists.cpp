// Runs a network with lists and optional outputs, and calls it wrongly: what it prints is in
// tests/vdla/packaging/test_bindings.py.

#include <cstdint>
#include <functional>
#include <iostream>
#include <vector>

#include "lists.h"
#include "vdla.hpp"

template <class Shape, class Values>
void show(const Shape &shape, const Values &values) {
  for (std::size_t side : shape) std::cout << side << "x";
  for (float value : values) std::cout << " " << value;
  std::cout << "\n";
}

void fail(const std::function<void()> &call) {
  try {
    call();
  } catch (const vdla::Error &error) {
    std::cout << error.what() << "\n";
  }
}

void give(vdla::Network &net, std::int64_t count, std::uint8_t flag) {
  const std::vector<float> rows{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  const std::vector<std::int64_t> sizes{1, 2, 2, 1, 0, 2};
  net.write("rows", rows);
  net.write("count", std::vector<std::int64_t>{count});
  net.write("sizes", sizes);
  net.write("flag", std::vector<std::uint8_t>{flag});
}

int main() {
  vdla::Network first(lists_open), second(lists_open);
  vdla::Network net = std::move(first);  // its memory stays
  second.start(2);
  for (const vdla::Info &info : net.inputs()) {
    std::cout << info.name << " " << info.type << " ";
    show(info.shape, std::vector<float>());
  }
  fail([&] { net.write("picture", std::vector<float>(12)); });
  fail([&] { net.write("rows", std::vector<float>(11)); });
  fail([&] { net.write("rows", std::vector<double>(12)); });
  fail([&] { net.output<float>("plain"); });
  fail([&] { net.run(); });
  give(net, 2, 0);
  net.run();
  give(second, 3, 1);
  second.run();
  fail([&] { net.run(); });
  show(vdla::Shape{}, net.output<float>("plain"));
  for (const char *name : {"each", "cut", "list", "empty", "maybe"})
    for (const auto &element : net.list<float>(name)) show(element.shape, element.values);
  for (const char *name : {"plain", "none", "maybe", "empty", "list"}) std::cout << net.has(name) << " ";
  std::cout << second.has("maybe") << "\n";
  show(vdla::Shape{}, second.output<float>("maybe"));
  fail([&] { net.output<float>("none"); });
  fail([&] { net.output<float>("each"); });
  fail([&] { net.output<double>("plain"); });
  fail([&] { net.list<float>("lists"); });
  fail([&] { second.start(65); });
}
