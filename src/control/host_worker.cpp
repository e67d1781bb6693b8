// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cstring>

#include "beeline/device/wait.hpp"
#include "control/change_word.hpp"
#include "control/command_worker.hpp"
#include "control/copy_if_there.hpp"
#include "control/mapped_memory.hpp"

namespace beeline {

namespace {

class HostWorker final : public CommandWorker {
 public:
  explicit HostWorker(const EngineClient& client) : destinations_(client), sources_(client) {}

  const char* begin(const Command& command, std::byte* remote, std::size_t slot) override {
    auto* local = reinterpret_cast<std::byte*>(command.local);
    switch (command.verb) {
      case Verb::put_inline:
        detail::put_inline(command, remote);
        return nullptr;
      case Verb::put:
      case Verb::copy:
        return move(remote, local, command, {command.remote_stride, command.local_stride});
      case Verb::get:
        return move(local, remote, command, {command.local_stride, command.remote_stride});
      default:
        results_[slot] = detail::change_word(command, remote);
        return nullptr;
    }
  }
  std::size_t batch_bytes() const override { return std::size_t{64} << 10; }  // a few us: other queues wait
  void begin_ring(bool, bool*) override {}
  bool end_ring(std::uint64_t*, std::uint64_t) override { return false; }
  std::uint64_t submit() override { return 0; }
  bool over(std::uint64_t) override { return true; }
  bool over() override { return true; }
  std::uint64_t result(std::size_t slot) const override { return results_[slot]; }

 private:
  struct Strides {
    std::uint64_t to, from;
  };

  const char* move(std::byte* to, const std::byte* from, const Command& command, Strides strides) {
    const std::uint64_t rows = command.rows, bytes = command.row_bytes;
    const bool is_there = destinations_.holds(to, (rows - 1) * strides.to + bytes) &&
                          sources_.holds(from, (rows - 1) * strides.from + bytes);
    for (std::uint64_t row = 0; row < rows; ++row, to += strides.to, from += strides.from)
      if (is_there)
        std::memcpy(to, from, bytes);
      else if (!detail::copy_if_there(to, from, bytes))
        return "memory of its poster is not there";
    return nullptr;
  }

  MappedMemory destinations_, sources_;
  std::array<std::uint64_t, command_batch * batches_under_way> results_{};
};

}  // namespace

std::unique_ptr<CommandWorker> make_host_worker(const EngineClient& client) {
  return std::make_unique<HostWorker>(client);
}

std::unique_ptr<CommandWorker> make_worker(const EngineClient& client, const GpuWindows* windows) {
  return client.device.is_gpu() ? make_gpu_worker(client, windows) : make_host_worker(client);
}

}  // namespace beeline
