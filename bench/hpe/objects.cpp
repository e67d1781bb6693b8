// SPDX-License-Identifier: Apache-2.0
#include "hpe/objects.hpp"

#include <functional>
#include <memory>
#include <numeric>
#include <random>
#include <string>

#include "beeline/core/error.hpp"
#include "beeline/hpe/copy.hpp"
#include "beeline/hpe/memory.hpp"
#include "hpe/bare_calls.hpp"
#include "hpe/bare_fault.hpp"
#include "hpe/report.hpp"
#include "hpe/word_kernels.hpp"

namespace beeline::bench::hpe {

namespace {

using beeline::hpe::Device;
using beeline::hpe::DeviceMemory;
using beeline::hpe::Hint;
using beeline::hpe::ObjectOptions;
using beeline::hpe::PinnedMemory;
using beeline::hpe::Protocol;
using beeline::hpe::Stream;

constexpr std::size_t block_sizes[] = {16 << 10, 64 << 10, 256 << 10, 1 << 20};

/// An object with these options, and its row of results.
struct Measured {
  ObjectOptions options;
  std::string method;
  nlohmann::ordered_json settings;
};

/// Objects by protection in each size of blocks, and by tracking and managed memory with the default.
std::vector<Measured> objects_of(Device device, Hint hint) {
  std::vector<Measured> all;
  const auto add = [&](Protocol protocol, std::size_t block) {
    ObjectOptions options;
    options.device = device;
    options.protocol = protocol;
    options.hint = hint;
    options.block_bytes = block;
    all.push_back({options,
                   std::string("object/") + beeline::hpe::name(protocol),
                   {{"block", block == 0 ? "default" : std::to_string(block)}, {"hint", beeline::hpe::name(hint)}}});
  };
  for (const std::size_t block : block_sizes) add(Protocol::protection, block);
  add(Protocol::protection, 0);
  add(Protocol::tracking, 0);
  return all;
}

/// Words on the device, and pinned words of the host: what programs use without objects.
struct TwoCopies {
  TwoCopies(Device device, std::size_t bytes) : there(device, bytes), here(bytes) {}
  DeviceMemory there;
  PinnedMemory here;
};

/// One measured way to do an operation's iterations.
class Iterations {
 public:
  virtual ~Iterations() = default;
  virtual void run(int count) = 0;
  [[nodiscard]] virtual bool is_right() = 0;
};

template <class Make>
void measure(const Row& row, const Make& make) {
  try {
    const std::unique_ptr<Iterations> iterations = make();
    const Samples samples = time_of([&](int count) { iterations->run(count); });
    print(row, samples, iterations->is_right());
  } catch (const Error& error) {
    if (error.code() != Status::unavailable && error.code() != Status::no_resource) throw;
    print_lacking(row, error.what());
  }
}

// --- Streaming ---

class Streaming : public Iterations {
 public:
  Streaming(Device device, std::size_t bytes)
      : stream(device), count(bytes / sizeof(std::uint32_t)), sums_(device, most_sums * sizeof(std::uint32_t)) {
    stream.fill(sums_.data(), 0, sums_.bytes());
    stream.synchronize();
  }
  void run(int iterations) override {
    for (int i = 0; i < iterations; ++i) {
      ++value_;
      write_and_launch(value_, sums_.as<std::uint32_t>());
      stream.synchronize();
    }
  }
  bool is_right() override {
    std::vector<std::uint32_t> sums(most_sums);
    beeline::hpe::copy(sums.data(), sums_.data(), sums_.bytes());
    return std::accumulate(sums.begin(), sums.end(), 0u) == static_cast<std::uint32_t>(value_ * count);
  }

 protected:
  virtual void write_and_launch(std::uint32_t value, std::uint32_t* sums) = 0;
  static void write(std::uint32_t* words, std::size_t count, std::uint32_t value) {
    for (std::size_t i = 0; i < count; ++i) words[i] = value;
  }
  Stream stream;
  const std::size_t count;

 private:
  static constexpr std::size_t most_sums = std::size_t{most_blocks} * block_threads;
  DeviceMemory sums_;
  std::uint32_t value_ = 0;
};

class StreamingObject final : public Streaming {
 public:
  StreamingObject(const ObjectOptions& options, std::size_t bytes)
      : Streaming(*options.device, bytes), words_(count, options) {}

 private:
  void write_and_launch(std::uint32_t value, std::uint32_t* sums) override {
    write(words_.data(), count, value);
    launch_sum(stream, words_, sums);
  }
  Words words_;
};

class StreamingCopies final : public Streaming {
 public:
  StreamingCopies(Device device, std::size_t bytes) : Streaming(device, bytes), copies_(device, bytes) {}

 private:
  void write_and_launch(std::uint32_t value, std::uint32_t* sums) override {
    write(copies_.here.as<std::uint32_t>(), count, value);
    if (stream.device().is_gpu())
      bare_enqueue(stream, copies_.there.data(), copies_.here.data(), copies_.here.bytes());
    else
      bare_copy(stream.device(), copies_.there.data(), copies_.here.data(), copies_.here.bytes());
    launch_sum(stream, copies_.there.as<std::uint32_t>(), count, sums);
  }
  TwoCopies copies_;
};

class StreamingManaged final : public Streaming {
 public:
  StreamingManaged(Device device, std::size_t bytes) : Streaming(device, bytes), words_(device, count) {}

 private:
  void write_and_launch(std::uint32_t value, std::uint32_t* sums) override {
    write(words_.data(), count, value);
    launch_sum(stream, words_.data(), count, sums);
  }
  ManagedWords words_;
};

// --- Reads after a kernel ---

constexpr std::size_t words_of_block = (64 << 10) / sizeof(std::uint32_t);

/// Words that the CPU reads after each kernel: one in `step`.
struct Positions {
  std::size_t step;
  bool move = false;          ///< to other blocks after each kernel
  bool is_irregular = false;  ///< the words' distances are not equal
  /// Calls `read` with each word after kernel number `kernel`.
  template <class Read>
  void for_each(std::size_t words, std::size_t kernel, const Read& read) const {
    const std::size_t turn = move ? kernel : 0;
    for (std::size_t start = 0; start < words; start += step) {
      const std::size_t word = start + offset(is_irregular ? start / step : 0, turn);
      if (word < words) read(word);
    }
  }

 private:
  [[nodiscard]] std::size_t offset(std::size_t part, std::size_t turn) const {
    const std::size_t blocks = step / words_of_block;
    if (!is_irregular) return move ? turn * 37 % blocks * words_of_block : step / 2;
    std::minstd_rand numbers(static_cast<std::minstd_rand::result_type>(1 + part + 65'536 * turn));
    numbers.discard(2);
    return numbers() % blocks * words_of_block;
  }
};

class Reading : public Iterations {
 public:
  Reading(Device device, std::size_t bytes, const Positions& positions)
      : stream(device), count(bytes / sizeof(std::uint32_t)), positions_(positions) {}
  void run(int iterations) override {
    for (int i = 0; i < iterations; ++i) {
      ++value_;
      launch_kernel();
      stream.synchronize();
      const std::uint32_t* const words = read();
      positions_.for_each(count, value_, [&](std::size_t word) { is_right_ &= words[word] == value_; });
    }
  }
  bool is_right() override { return is_right_; }

 protected:
  virtual void launch_kernel() = 0;
  /// The words, which the CPU may read now.
  virtual const std::uint32_t* read() = 0;
  Stream stream;
  const std::size_t count;

 private:
  const Positions positions_;
  std::uint32_t value_ = 0;
  bool is_right_ = true;
};

class ReadingObject final : public Reading {
 public:
  ReadingObject(const ObjectOptions& options, std::size_t bytes, const Positions& positions)
      : Reading(*options.device, bytes, positions), words_(count, options) {}

 private:
  void launch_kernel() override { launch_increment(stream, words_); }
  const std::uint32_t* read() override { return words_.data(); }
  Words words_;
};

class ReadingCopies final : public Reading {
 public:
  ReadingCopies(Device device, std::size_t bytes, const Positions& positions)
      : Reading(device, bytes, positions), copies_(device, bytes) {
    stream.fill(copies_.there.data(), 0, bytes);
    stream.synchronize();
  }

 private:
  void launch_kernel() override { launch_increment(stream, copies_.there.as<std::uint32_t>(), count); }
  const std::uint32_t* read() override {
    bare_copy_and_wait(stream, copies_.here.data(), copies_.there.data(), copies_.here.bytes());
    return copies_.here.as<std::uint32_t>();
  }
  TwoCopies copies_;
};

class ReadingManaged final : public Reading {
 public:
  ReadingManaged(Device device, std::size_t bytes, const Positions& positions)
      : Reading(device, bytes, positions), words_(device, count) {}

 private:
  void launch_kernel() override { launch_increment(stream, words_.data(), count); }
  const std::uint32_t* read() override { return words_.data(); }
  ManagedWords words_;
};

void measure_reading(const std::string& operation, std::size_t bytes, const Positions& positions) {
  const Device device = Device::all().front();
  Row row{operation, "", "us", bytes, {}};
  for (const Measured& one : objects_of(device, Hint::none)) {
    row.method = one.method, row.settings = one.settings;
    measure(row, [&] { return std::make_unique<ReadingObject>(one.options, bytes, positions); });
  }
  row.settings = {{"block", "none"}, {"hint", "none"}};
  row.method = "bare/copy_all";
  measure(row, [&] { return std::make_unique<ReadingCopies>(device, bytes, positions); });
  row.method = "bare/cudaMallocManaged";
  measure(row, [&] { return std::make_unique<ReadingManaged>(device, bytes, positions); });
}

/// Every third block, at distances that no two accesses in a row share, so that none is fetched ahead; and another
/// third after each kernel, so that none is expected.
constexpr std::size_t first_accesses = 64, first_step = 3;
constexpr std::size_t first_block(std::size_t access) {
  return access * (access + 1) / 2 % first_accesses * first_step;
}

Row first_access_row(const std::string& method, std::size_t block) {
  return {"hpe_first_access", method, "us", block, {{"block", std::to_string(block)}, {"hint", "none"}}};
}

/// Times first accesses to words of different blocks.
///   prepare  called before each sample
///   access   of a word; returns whether it had the right value
void time_accesses(const Row& row, const std::function<void()>& prepare,
                   const std::function<bool(std::size_t)>& access) {
  Samples samples;
  samples.operations = first_accesses;
  bool is_right = true;
  for (int sample = -1; sample < sample_count; ++sample) {
    prepare();
    const std::size_t third = static_cast<std::size_t>(sample + 1) % first_step;
    const double begun = now_s();
    for (std::size_t each = 0; each < first_accesses; ++each)
      is_right &= access((first_block(each) + third) * row.bytes / sizeof(std::uint32_t));
    if (sample >= 0) samples.values.push_back((now_s() - begun) * 1e6 / first_accesses);
  }
  print(row, samples, is_right);
}

/// A protocol's fault and copy of one block.
void measure_first_access_of_object(const Device& device, const Measured& one, std::size_t block) {
  ObjectOptions options = one.options;
  options.block_bytes = block;
  Words object(first_accesses * first_step * block / sizeof(std::uint32_t), options);
  Stream stream(device);
  std::uint32_t value = 0;
  time_accesses(
      first_access_row(one.method, block),
      [&] {
        ++value;
        launch_increment(stream, object);
        stream.synchronize();
      },
      [&](std::size_t word) { return object[word] == value; });
}

}  // namespace

void measure_streaming(const std::vector<std::size_t>& sizes) {
  const Device device = Device::all().front();
  for (const std::size_t bytes : sizes) {
    Row row{"hpe_streaming", "", "us", bytes, {}};
    for (const Hint hint : {Hint::streaming, Hint::none})
      for (const Measured& one : objects_of(device, hint)) {
        row.method = one.method, row.settings = one.settings;
        measure(row, [&] { return std::make_unique<StreamingObject>(one.options, bytes); });
      }
    row.settings = {{"block", "none"}, {"hint", "none"}};
    row.method = "bare/copy_all";
    measure(row, [&] { return std::make_unique<StreamingCopies>(device, bytes); });
    row.method = "bare/cudaMallocManaged";
    measure(row, [&] { return std::make_unique<StreamingManaged>(device, bytes); });
  }
}

void measure_sparse(const std::vector<std::size_t>& sizes) {
  for (const std::size_t bytes : sizes) measure_reading("hpe_sparse", bytes, {100 * words_of_block});
}

void measure_scattered(const std::vector<std::size_t>& sizes) {
  for (const std::size_t bytes : sizes) measure_reading("hpe_scattered", bytes, {100 * words_of_block, true});
}

void measure_irregular(const std::vector<std::size_t>& sizes) {
  for (const std::size_t bytes : sizes)
    measure_reading("hpe_irregular", bytes, {.step = 100 * words_of_block, .is_irregular = true});
}

void measure_random(const std::vector<std::size_t>& sizes) {
  for (const std::size_t bytes : sizes) measure_reading("hpe_random", bytes, {100 * words_of_block, true, true});
}

void measure_sequential(const std::vector<std::size_t>& sizes) {
  constexpr std::size_t words_of_line = 16;  // a word of each line of the cache
  for (const std::size_t bytes : sizes) measure_reading("hpe_sequential", bytes, {words_of_line});
}

void measure_first_access(const std::vector<std::size_t>& sizes) {
  const Device device = Device::all().front();
  for (const std::size_t block : sizes) {
    for (const Measured& one : objects_of(device, Hint::none))
      if (one.options.block_bytes == 0) measure_first_access_of_object(device, one, block);
    const std::size_t bytes = first_accesses * first_step * block;
    BareFaults faults(bytes);
    TwoCopies copies(device, bytes);
    Stream stream(device);
    stream.fill(copies.there.data(), 0, bytes);
    stream.synchronize();
    const auto copy_block = [&](std::size_t word) {
      bare_copy_and_wait(stream, copies.here.data() + word * 4, copies.there.data() + word * 4, block);
    };
    time_accesses(
        first_access_row("bare/fault", block), [&] { faults.protect(); },
        [&](std::size_t word) { return faults.words()[word] == 0; });
    time_accesses(
        first_access_row("bare/fault_and_copy", block), [&] { faults.protect(); },
        [&](std::size_t word) {
          copy_block(word);
          return faults.words()[word] == 0;
        });
    time_accesses(
        first_access_row("bare/copy", block), [] {},
        [&](std::size_t word) {
          copy_block(word);
          return true;
        });
  }
}

}  // namespace beeline::bench::hpe
