// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// A stream that forwards calls to another stream.

#include <functional>
#include <memory>
#include <utility>

#include "beeline/transport/stream.hpp"

namespace beeline {

/// Derived classes override the calls that they handle themselves. `Derived::own()` returns the stream to which calls
/// are forwarded.
template <class Derived>
class ForwardingStream : public Stream {
 public:
  const Device& device() const override { return own().device(); }
  void copy(void* destination, const void* source, std::size_t bytes) override {
    own().copy(destination, source, bytes);
  }
  void fill(void* destination, unsigned char value, std::size_t bytes) override {
    own().fill(destination, value, bytes);
  }
  void write_signal(std::uint64_t* signal, std::uint64_t value) override { own().write_signal(signal, value); }
  void wait_signal(std::uint64_t* signal, std::uint64_t value) override { own().wait_signal(signal, value); }
  bool holds_signal_waits() override { return own().holds_signal_waits(); }
  void release_waits() override { own().release_waits(); }
  std::unique_ptr<Event> make_event() override { return own().make_event(); }
  void record(Event& event) override { own().record(event); }
  void wait_event(Event& event) override { own().wait_event(event); }
  bool drained() const noexcept override { return own().drained(); }
  bool sleep_until_drained(std::int64_t longest_ns) override { return own().sleep_until_drained(longest_ns); }
  bool idle() override { return own().idle(); }
  void* native() const override { return own().native(); }
  void enqueue(std::function<void()> work) override { own().enqueue(std::move(work)); }
  bool begin_here() override { return own().begin_here(); }
  void end_here() override { own().end_here(); }
  HostWorkers* workers() override { return own().workers(); }
  GridState* grid_state() const override { return own().grid_state(); }
  LaunchedTeams& launched_teams() override { return own().launched_teams(); }
  std::uint64_t capture() const override { return own().capture(); }
  void keep_with_graph(std::shared_ptr<void> held) override { own().keep_with_graph(std::move(held)); }

 private:
  [[nodiscard]] Stream& own() const { return static_cast<const Derived*>(this)->own(); }
};

}  // namespace beeline
