// SPDX-License-Identifier: Apache-2.0
// The program of `beeline bench files`: beeline-bench-files FOLDER host|device BYTES[,BYTES...] ROUNDS STATE[,STATE...]
// METHOD[,METHOD...], which prints results. `beeline bench files` starts it several times, in turns with other
// programs, whose methods it leaves out.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "beeline/core/error.hpp"
#include "beeline/hpe/copy.hpp"
#include "beeline/hpe/files.hpp"
#include "beeline/hpe/memory.hpp"
#include "beeline/runtime/file_descriptor.hpp"
#include "hpe/bare_uring.hpp"
#include "hpe/report.hpp"

namespace beeline::bench::hpe {

namespace {

namespace fs = std::filesystem;
using beeline::hpe::Device;
using beeline::hpe::DeviceMemory;
using beeline::hpe::FileOptions;
using beeline::hpe::FileVariant;
using beeline::hpe::PinnedMemory;

/// Where reads find the file, and what writes find.
enum class State { cold, cached, existing, fresh, durable };
constexpr const char* name_of(State state) {
  constexpr const char* names[] = {"cold", "cached", "existing", "new", "durable"};
  return names[static_cast<int>(state)];
}
bool reads(State state) { return state == State::cold || state == State::cached; }
bool is_made(State state) { return state == State::fresh || state == State::durable; }

/// The memory and the file of all methods.
struct Endpoints {
  Endpoints(const fs::path& folder, bool on_device, std::size_t length)
      : path(folder / ("beeline-bench-files-" + std::to_string(::getpid()))), bytes(length),
        is_gpu(on_device && Device::all().front().is_gpu()), pinned(length) {
    if (on_device) device.emplace(Device::all().front(), length);
    for (std::size_t i = 0; i < length; ++i) pinned.data()[i] = static_cast<std::byte>(i * 2654435761u >> 11);
    beeline::hpe::copy(memory(), pinned.data(), length);
  }
  ~Endpoints() {
    std::error_code ignored;
    fs::remove(path, ignored);
  }
  [[nodiscard]] std::byte* memory() const { return device ? device->data() : pinned.data(); }
  [[nodiscard]] FileDescriptor open_direct(int mode) const {
    FileDescriptor file(::open(path.c_str(), mode | O_DIRECT | O_CLOEXEC, 0666));
    require(static_cast<bool>(file), Status::unavailable, "the folder's file system refuses O_DIRECT");
    return file;
  }

  const fs::path path;
  const std::size_t bytes;
  const bool is_gpu;
  PinnedMemory pinned;
  std::optional<DeviceMemory> device;
};

/// The library's defaults, which the bare loop uses, too.
constexpr std::size_t kib = 1024;
std::size_t block_bytes(const Endpoints& ends, State state) {
  const std::size_t most_kib = is_made(state) ? 4096 : reads(state) && ends.is_gpu ? 512 : 1024;
  return std::clamp(std::bit_floor(ends.bytes / 8), 256 * kib, most_kib * kib);
}
constexpr unsigned calls = 4;

/// How the file's bytes are moved.
struct Method {
  std::string name;
  std::function<void()> move = {};
  std::string lacking = {};
};

/// Brings the file into a state. Blocks that were read past the cache do not leave it.
void prepare(const Endpoints& ends, State state) {
  if (is_made(state)) {
    fs::remove(ends.path);
    return;
  }
  if (!fs::exists(ends.path)) beeline::hpe::write_file(ends.path, ends.memory(), ends.bytes);
  const FileDescriptor file(::open(ends.path.c_str(), O_RDWR | O_CLOEXEC));
  ::fdatasync(file.get());
  if (state != State::cached) {
    ::posix_fadvise(file.get(), 0, 0, POSIX_FADV_DONTNEED);
    return;
  }
  std::vector<std::byte> some(1024 * kib);
  for (std::size_t at = 0; at < ends.bytes; at += some.size())
    static_cast<void>(::pread(file.get(), some.data(), some.size(), static_cast<off_t>(at)));
}

/// The data of a new file, and its name.
void make_durable(const Endpoints& ends, const FileDescriptor& file) {
  const FileDescriptor folder(::open(ends.path.parent_path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  require(::fdatasync(file.get()) == 0 && ::fsync(folder.get()) == 0, Status::internal, "a new file is not durable");
}

/// Memory of a bare loop: that of the other methods, if it is the host's; buffers from which nothing is copied on,
/// which shows the file system's speed; the same in small pages.
enum class BareMemory { same, buffers, small_pages };

/// Blocks to and from the memory of the host; for a GPU, always buffers.
Method bare_method(Endpoints& ends, State state, BareMemory memory) {
  constexpr const char* names[] = {"bare/io_uring", "bare/io_uring_buffers", "bare/io_uring_small_pages"};
  const bool is_twice = memory == BareMemory::buffers && ends.is_gpu;
  Method method{.name = names[static_cast<int>(memory)],
                .lacking = is_twice ? "bare/io_uring has only buffers, too" : BareUring::lacking()};
  if (!method.lacking.empty()) return method;
  const auto uring = std::make_shared<BareUring>(block_bytes(ends, state), calls, memory != BareMemory::small_pages);
  method.move = [&ends, state, in_place = memory == BareMemory::same && !ends.is_gpu, uring] {
    const FileDescriptor file = ends.open_direct(reads(state) ? O_RDONLY : O_WRONLY | O_CREAT);
    if (is_made(state)) static_cast<void>(::fallocate(file.get(), 0, 0, static_cast<off_t>(ends.bytes)));
    uring->move(file.get(), reads(state), ends.bytes, in_place ? ends.memory() : nullptr);
    if (state == State::durable) make_durable(ends, file);
  };
  return method;
}

Method own_method(const Endpoints& ends, State state, const std::string& name, FileOptions options) {
  options.durable = state == State::durable;
  return {"hpe/" + name, [&ends, state, options] {
            if (reads(state))
              beeline::hpe::read_file(ends.path, ends.memory(), ends.bytes, options);
            else
              beeline::hpe::write_file(ends.path, ends.memory(), ends.bytes, options);
          }};
}

/// The bound by the copies between a GPU and pinned memory.
Method copy_method(const Endpoints& ends, State state) {
  return {"bare/pinned_copy",
          [&ends, state] {
            if (reads(state))
              beeline::hpe::copy(ends.memory(), ends.pinned.data(), ends.bytes);
            else
              beeline::hpe::copy(ends.pinned.data(), ends.memory(), ends.bytes);
          },
          ends.is_gpu ? "" : "memory of the host is read and written in place"};
}

/// Whether the memory or the file has the expected bytes after one transfer.
bool is_right(Endpoints& ends, State state, const Method& method) {
  if (method.name.starts_with("bare/")) return true;
  std::vector<std::byte> expected(ends.bytes), there(ends.bytes);
  for (std::size_t i = 0; i < ends.bytes / sizeof(std::uint64_t); ++i) {  // by words: gigabytes in less than a second
    const std::uint64_t word = (i + 1) * 0x9e3779b97f4a7c15u;
    std::memcpy(expected.data() + i * sizeof word, &word, sizeof word);
  }
  if (reads(state)) {
    beeline::hpe::write_file(ends.path, expected.data(), ends.bytes);
    method.move();
    beeline::hpe::copy(there.data(), ends.memory(), ends.bytes);
  } else {
    beeline::hpe::copy(ends.memory(), expected.data(), ends.bytes);
    method.move();
    beeline::hpe::read_file(ends.path, there.data(), ends.bytes);
  }
  return there == expected;
}

/// What the command line asks for.
struct Request {
  fs::path folder;
  std::string memory;
  std::vector<std::string> sizes;
  int rounds;
  std::vector<std::string> states, methods;
};

bool has(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::vector<std::string> names_in(std::string_view list) {
  std::vector<std::string> names(1);
  for (const char each : list)
    if (each == ',')
      names.emplace_back();
    else
      names.back() += each;
  return names;
}

std::vector<Method> methods_of(Endpoints& ends, State state, const std::vector<std::string>& names) {
  std::vector<Method> methods{copy_method(ends, state)};
  for (const BareMemory memory : {BareMemory::same, BareMemory::buffers, BareMemory::small_pages})
    methods.push_back(bare_method(ends, state, memory));
  for (const FileVariant variant :
       {FileVariant::automatic, FileVariant::user, FileVariant::pinned, FileVariant::double_buffered})
    methods.push_back(own_method(ends, state, beeline::hpe::name(variant), {.variant = variant}));
  methods.push_back(own_method(ends, state, "direct", {.access = beeline::hpe::FileAccess::direct}));
  std::erase_if(methods, [&](const Method& method) { return !has(names, method.name); });
  return methods;
}

/// All methods in turns, so that a change of the machine's speed meets each of them; in any order, so that none always
/// follows one that leaves the caches to it in a bad state.
void measure(Endpoints& ends, State state, const Request& request) {
  const std::vector<Method> methods = methods_of(ends, state, request.methods);
  std::vector<Samples> samples(methods.size());
  std::vector<std::size_t> order(methods.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::mt19937 random(std::random_device{}());
  for (int round = 0; round <= request.rounds; ++round) {
    std::shuffle(order.begin(), order.end(), random);
    for (const std::size_t i : order) {
      if (!methods[i].lacking.empty()) continue;
      prepare(ends, state);
      const double begun = now_s();
      methods[i].move();
      const double taken_s = now_s() - begun;
      if (round > 0) samples[i].values.push_back(static_cast<double>(ends.bytes) / taken_s / 1e9);
    }
  }
  for (std::size_t i = 0; i < methods.size(); ++i) {
    const Row row{reads(state) ? "file_read" : "file_write",
                  methods[i].name,
                  "GB/s",
                  ends.bytes,
                  {{"memory", request.memory}, {"file", name_of(state)}, {"block_bytes", block_bytes(ends, state)}}};
    if (methods[i].lacking.empty())
      print(row, samples[i], is_right(ends, state, methods[i]));
    else
      print_lacking(row, methods[i].lacking);
  }
}

void measure_files(const Request& request) {
  for (const std::string& size : request.sizes) {
    std::size_t bytes = 0;
    const auto [rest, problem] = std::from_chars(size.data(), size.data() + size.size(), bytes);
    require(problem == std::errc{} && rest == size.data() + size.size() && bytes != 0 && bytes % 4096 == 0,
            Status::invalid_argument, "sizes are multiples of 4096 bytes");
    Endpoints ends(request.folder, request.memory == "device", bytes);
    for (const State state : {State::cold, State::cached, State::existing, State::fresh, State::durable})
      if (has(request.states, name_of(state))) measure(ends, state, request);
  }
}

}  // namespace

}  // namespace beeline::bench::hpe

int main(int argc, char** argv) {
  using beeline::bench::hpe::names_in;
  try {
    beeline::require(argc == 7, beeline::Status::invalid_argument,
                     "expected a folder, a memory, sizes, rounds, states and methods");
    beeline::bench::hpe::measure_files({.folder = argv[1],
                                        .memory = argv[2],
                                        .sizes = names_in(argv[3]),
                                        .rounds = std::atoi(argv[4]),
                                        .states = names_in(argv[5]),
                                        .methods = names_in(argv[6])});
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "beeline-bench-files: %s\n", error.what());
    return 2;
  }
}
