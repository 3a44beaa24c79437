// A network that `vdla package --as static` or `--as shared` made, in C++17: this header alone.
//
//     #include "digits.h"
//     #include "vdla.hpp"
//     vdla::Network net(digits_open);
//     std::vector<float> pixels(64);
//     net.write("image", pixels);  // each input, before each run
//     net.run();
//     for (float score : net.output<float>("logits")) std::cout << score << "\n";
//
// An output is borrowed until the next input is written. Of the list y, list<float>("y") copies the
// elements; has("y") tells whether the optional output y is there. What fails throws vdla::Error.
// Elements are of the type of C++ that has their bytes: float16 is uint16_t, int4 is uint8_t.
// Threads may use several networks at once, and one network in turns.

#ifndef VDLA_HPP
#define VDLA_HPP

#include <cstring>
#include <memory>
#include <new>
#include <set>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "vdla.h"

struct vdla {  // C's opaque type, which is the scope of C++'s
  vdla() = delete;
  class Network;
  using Shape = std::vector<std::size_t>;
  struct Error : std::runtime_error { using std::runtime_error::runtime_error; };

  // An input or output; where one output is a list, its shape begins with the length.
  struct Info { std::string name, type; Shape shape; };

  template <class T> struct Array { Shape shape; std::vector<T> values; };  // an element of a list

  template <class T> struct Span {  // elements, row-major, that somebody else keeps
    const T *first;
    std::size_t count;
    const T *data() const { return first; }
    std::size_t size() const { return count; }
    const T *begin() const { return first; }
    const T *end() const { return first + count; }
    const T &operator[](std::size_t n) const { return first[n]; }
  };
};

class vdla::Network {
 public:
  // Opens a network by NAME_open, which its header has.
  explicit Network(int (*open)(void *, std::size_t, const vdla_board *, vdla **),
                   const vdla_board *board = nullptr) {
    int status = VDLA_BAD_MEMORY;
    for (std::size_t bytes = 4096, last = 0; status == VDLA_BAD_MEMORY && bytes > last;) {
      memory_.reset(::operator new(bytes, ALIGNED), [](void *m) { ::operator delete(m, ALIGNED); });
      status = open(memory_.get(), last = bytes, board, &net_);
      bytes = vdla_memory(net_);
    }
    check(status);
    check(vdla_describe(net_, &counts_));
  }
  Network(Network &&) = default;
  Network &operator=(Network &&) = default;

  // Has threads share the work, the caller's among them: once, and where the system has threads.
  void start(std::uint32_t threads) {
    check(vdla_start(net_, threads));
    memory_.reset(memory_.get(), [net = net_, own = memory_](void *) { vdla_close(net); });
  }

  std::vector<Info> inputs() const { return infos(vdla_input, counts_.inputs); }
  std::vector<Info> outputs() const { return infos(vdla_output, counts_.outputs); }
  struct vdla *handle() const { return net_; }  // for what vdla.h has beside this

  // Writes an input: all elements of a vector, an array, a Span or its like.
  template <class Values> void write(const std::string &name, const Values &values) {
    const auto type = stored<std::decay_t<decltype(*std::data(values))>>();
    const vdla_tensor tensor = named(vdla_input, inputs(), name, "inputs", false)[0];
    std::size_t count = 1;
    for (std::uint32_t axis = 0; axis < tensor.rank; axis++) count *= tensor.shape[axis];
    if (std::size(values) != count || type != stored(tensor.type))
      throw Error("input " + name + ": expected " + stored(tensor.type) + bracketed(count) +
                  ", found " + type + bracketed(std::size(values)));
    is_run_ = false;
    if (count) std::memcpy(tensor.data, std::data(values), tensor.bytes);
    written_.insert(name);
  }

  void run() {
    for (const Info &input : inputs())
      if (!written_.count(input.name))
        throw Error("input " + input.name + ": expected its elements before each run, found none");
    written_.clear();
    check(vdla_run(net_));
    is_run_ = true;
  }

  // Tells whether the last run gave an output: it may leave out an optional one.
  bool has(const std::string &name) const {
    for (const vdla_tensor &tensor : results(name, true))
      if (tensor.data || tensor.is_list) return true;
    return false;
  }

  // An output's elements, until an input is written.
  template <class T> Span<T> output(const std::string &name) const {
    const vdla_tensor tensor = results(name, false)[0];
    if (tensor.data && !tensor.is_list) return elements<T>(tensor);
    const char *actual = tensor.is_list ? "a list" : "none";
    throw Error("output " + name + ": expected an array, found " + actual);
  }

  // Copies of a list's elements, be they outputs y[0], y[1] … or in one output y.
  template <class T> std::vector<Array<T>> list(const std::string &name) const {
    std::vector<Array<T>> made;
    for (const vdla_tensor &tensor : results(name, true)) {
      if (!tensor.data) continue;
      const Shape shape(tensor.shape + (tensor.is_list ? 1 : 0), tensor.shape + tensor.rank);
      const std::size_t length = tensor.is_list ? tensor.shape[0] : 1;
      const Span<T> all = elements<T>(tensor);
      for (std::size_t n = 0; n < length; n++)
        made.push_back(array(Span<T>{all.first + all.count / length * n, all.count / length}, shape,
                             tensor.sizes ? tensor.sizes + n * shape.size() : nullptr));
    }
    return made;
  }

 private:
  void check(int status) const { if (status != VDLA_OK) throw Error(vdla_error(net_)); }
  static std::string bracketed(std::size_t n) { return "[" + std::to_string(n) + "]"; }

  std::vector<Info> infos(decltype(vdla_input) *get, std::uint32_t count) const {
    std::vector<Info> made(count);
    for (std::uint32_t n = 0; n < count; n++) {
      vdla_tensor tensor;
      check(get(net_, n, &tensor));
      made[n] = {tensor.name, TYPES[tensor.type], {tensor.shape, tensor.shape + tensor.rank}};
    }
    return made;
  }

  // The input or output of a name, or those of a list: y, or y[0], y[1] …
  std::vector<vdla_tensor> named(decltype(vdla_input) *get, const std::vector<Info> &infos,
                                 const std::string &name, const char *kind, bool lists) const {
    std::vector<vdla_tensor> made;
    std::string names;
    for (std::uint32_t n = 0; n < infos.size(); n++) {
      const std::string &own = infos[n].name;
      const bool is_listed = own.find(name + "[") == 0 && own.find(']', name.size()) + 1 == own.size();
      if (own == name || (lists && is_listed)) check(get(net_, n, &made.emplace_back()));
      names += (n ? ", " : "") + own;
    }
    if (made.empty()) throw Error(kind + (": expected " + names) + ", found " + name);
    return made;
  }

  std::vector<vdla_tensor> results(const std::string &name, bool lists) const {
    if (is_run_) return named(vdla_output, outputs(), name, "outputs", lists);
    throw Error("output " + name + ": expected a run after inputs are written, found none");
  }

  template <class T> static Span<T> elements(const vdla_tensor &tensor) {
    const std::string name = tensor.name, type = stored(tensor.type);
    if (type != stored<T>())
      throw Error("output " + name + ": expected to be read as " + type + ", found " + stored<T>());
    return {static_cast<const T *>(tensor.data), tensor.bytes / sizeof(T)};
  }

  // A copy of an array, of each axis the first sizes if there are any.
  template <class T> static Array<T> array(Span<T> all, const Shape &shape, const std::int64_t *sizes) {
    Array<T> made{sizes ? Shape(sizes, sizes + shape.size()) : shape, {}};
    for (std::size_t n = 0, axis; n < all.count; n++) {
      std::size_t rest = n;
      for (axis = shape.size(); axis > 0 && rest % shape[axis - 1] < made.shape[axis - 1]; axis--)
        rest /= shape[axis - 1];
      if (axis == 0) made.values.push_back(all[n]);
    }
    return made;
  }

  // The type of C++ that has the bytes of T, or of elements of a type.
  template <class T> static std::string stored() {
    const char *kind = std::is_floating_point_v<T> ? "float" : std::is_signed_v<T> ? "int" : "uint";
    return kind + std::to_string(8 * sizeof(T));
  }
  static std::string stored(std::uint32_t type) {
    if (type == VDLA_FLOAT16 || type == VDLA_BFLOAT16) return "uint16";
    return type == VDLA_BOOL || type > VDLA_BFLOAT16 ? "uint8" : TYPES[type];
  }

  static constexpr std::align_val_t ALIGNED{64};
  static constexpr const char *TYPES[] = {  // of enum vdla_type
      "bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16",
      "float32", "float64", "bfloat16", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2",
      "float8_e5m2fnuz", "float8_e8m0fnu", "float4_e2m1fn", "int4", "uint4", "int2", "uint2"};
  vdla *net_ = nullptr;
  std::shared_ptr<void> memory_;
  vdla_description counts_{};
  std::set<std::string> written_;
  bool is_run_ = false;
};

#endif
