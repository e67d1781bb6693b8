// SPDX-License-Identifier: Apache-2.0
#include "hpe/files/staged_copies.hpp"

#include <fmt/format.h>

#include <chrono>
#include <cstring>
#include <vector>

#include "beeline/core/error.hpp"
#include "beeline/hpe/copy.hpp"
#include "control/copy_if_there.hpp"
#include "core/fork.hpp"
#include "hpe/stream_state.hpp"

namespace beeline::hpe::detail {

namespace {

/// Whether this process may copy its own memory by a system call, which containers may forbid.
bool may_copy_by_call() {
  std::byte from{1}, to{0};
  return beeline::detail::copy_if_there(&to, &from, 1) && to == from;
}

class HostCopies final : public StagedCopies {
 public:
  bool start(unsigned, std::byte* to, const std::byte* from, std::size_t bytes) override {
    static constinit beeline::detail::ProcessValue<const bool> by_call;
    if (!by_call.get(may_copy_by_call))
      std::memcpy(to, from, bytes);
    else if (!beeline::detail::copy_if_there(to, from, bytes))
      throw Error(
          Status::invalid_argument,
          fmt::format("{} bytes of the memory of a transfer with a file are not mapped any more, or protected", bytes));
    return true;
  }
  bool is_done(unsigned) override { return true; }
  bool settle() noexcept override { return true; }
};

class StreamCopies final : public StagedCopies {
 public:
  StreamCopies(Stream& stream, unsigned slots) : stream_(stream), ended_(slots) {}
  bool start(unsigned slot, std::byte* to, const std::byte* from, std::size_t bytes) override {
    hpe::copy(to, from, bytes, stream_);
    ended_[slot] = stream_.state().take_event();
    stream_.state().enqueue([&](beeline::Stream& stream) { stream.record(*ended_[slot]); });
    return false;  // asking takes about a microsecond
  }
  bool is_done(unsigned slot) override {
    if (!ended_[slot]->done()) return false;
    // Reports copies that have failed: their events are done, too.
    if (slot == 0) static_cast<void>(stream_.is_done());
    return true;
  }
  bool settle() noexcept override {
    try {
      stream_.synchronize({.deadline = std::chrono::seconds(10)});
      return true;
    } catch (const Error& error) {
      return error.code() != Status::deadline;
    }
  }

 private:
  Stream& stream_;
  std::vector<std::shared_ptr<Event>> ended_;  ///< [slots] of the slot's latest copy; transfers of the lane reuse them
};

}  // namespace

std::unique_ptr<StagedCopies> make_host_copies() { return std::make_unique<HostCopies>(); }

std::unique_ptr<StagedCopies> make_stream_copies(Stream& stream, unsigned slots) {
  return std::make_unique<StreamCopies>(stream, slots);
}

}  // namespace beeline::hpe::detail
