// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "control/command_worker.hpp"
#include "control/copy_if_there.hpp"
#include "control/mapped_memory.hpp"

namespace beeline {

namespace {

/// Checks the poster's memory, which may not be mapped.
class HostWorker final : public CommandWorker {
 public:
  explicit HostWorker(const EngineClient& client) : destinations_(client), sources_(client) {}

  /// Stores payloads itself, without a virtual call for each.
  const char* begin_all(const Command& batch, std::span<const BatchEntry> entries, std::byte* const* targets,
                        std::size_t slot, std::size_t& index) override {
    for (index = 0; index < entries.size(); ++index) {
      const BatchEntry& entry = entries[index];
      if (has_shape<VerbShape::payload>(entry.verb()))
        detail::put_inline(entry, entry.width(), targets[index]);
      else if (const char* const refused = begin(command_of(batch, entry), targets[index], slot))
        return refused;
    }
    return nullptr;
  }

 private:
  const char* move(const RowMove& rows) override {
    if ((rows.is_writable || destinations_.holds(rows.to, rows.to_span())) &&
        (rows.is_readable || sources_.holds(rows.from, rows.from_span())))
      return CommandWorker::move(rows);
    return rows.for_rows(detail::copy_if_there) ? nullptr : "memory of its poster is not there";
  }

  MappedMemory destinations_, sources_;
};

}  // namespace

const char* CommandWorker::move(const RowMove& rows) {
  rows.for_rows([](std::byte* to, const std::byte* from, std::size_t bytes) {
    std::memcpy(to, from, bytes);
    return true;
  });
  return nullptr;
}

void CommandWorker::put_inline(const Command& command, std::byte* remote, std::size_t) {
  detail::put_inline(command, remote);
}

void CommandWorker::change(const Command& command, std::byte* remote, std::size_t slot) {
  results_[slot] = detail::change_word(command, remote);
}

std::unique_ptr<CommandWorker> make_host_worker(const EngineClient& client) {
  return std::make_unique<HostWorker>(client);
}

std::unique_ptr<CommandWorker> make_worker(const EngineClient& client, const GpuWindows* windows) {
  return client.device.is_gpu() ? make_gpu_worker(client, windows) : make_host_worker(client);
}

}  // namespace beeline
