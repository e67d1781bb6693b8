// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// A software adapter: a ring of descriptors of a foreign format as a source of an engine's commands. A *server*
/// decodes one format; host engines use it through `AdapterSource`, resident blocks through `AdapterThread`
/// (adapter_block.hpp).
///
/// A server is a host/device class without virtual functions:
///
///   Ring                               its state, in memory of the engine's device: trivially copyable
///   Server(), explicit Server(Ring& ring)    it may hold copies of the ring's state; copyable
///   void save()                        writes the copies back to the ring
///   bool has_next() const              whether `take` would decode a descriptor or return a command
///   bool take(Command& command)        decodes descriptors until one yields a command; false: there are no more.
///       Numbers commands from 1 in `sequence`. Reports a descriptor that it refuses by an error completion, in the
///       order of the ring
///   bool has_known() const             whether `take` has work without another look at the ring's posts
///   void answer(const Command& command, std::uint64_t value)   the old value of the word that a command has changed
///   void refused(const Command& command)   the engine has refused the command taken last; nothing was touched
///   void complete(std::uint64_t commands)  the first `commands` commands are complete: writes their completions
///   std::uint64_t* asleep() const      the word by which posters find that the engine sleeps

#include <atomic>
#include <cstdint>

#include "beeline/core/command_protocol.hpp"
#include "beeline/device/impl/route.hpp"
#include "beeline/device/impl/verbs.hpp"
#include "beeline/transport/engine.hpp"

namespace beeline {

/// A server as a source of commands for a thread of the host. Refused commands end in error completions, so the engine
/// goes on.
template <class Server>
class alignas(fetched_bytes) AdapterSource final : public CommandSource {
 public:
  ///   ring  outlives this object
  explicit AdapterSource(typename Server::Ring& ring) : server_(ring) {}
  ~AdapterSource() override { server_.save(); }
  AdapterSource(const AdapterSource&) = delete;
  AdapterSource& operator=(const AdapterSource&) = delete;

  [[nodiscard]] bool has_next() const override { return is_ahead_ || server_.has_next(); }
  [[nodiscard]] Verb next_verb() const override {
    // The verb is known once the descriptor is decoded; descriptors that are refused have none.
    if (!is_ahead_) is_ahead_ = server_.take(ahead_);
    return is_ahead_ ? ahead_.verb : Verb::copy;
  }
  [[nodiscard]] bool take(Command& command) override {
    if (is_ahead_)
      command = ahead_, is_ahead_ = false;
    else if (!server_.take(command))
      return false;
    taken_ = command.sequence;
    return true;
  }
  [[nodiscard]] std::uint64_t taken() const override { return taken_; }
  void release_slots() override {}
  void answer(const Command& command, std::uint64_t value) override { server_.answer(command, value); }
  void release_sources(DoneCount) override {}
  void complete(DoneCount completed) override { server_.complete(completed.commands()); }
  void refuse(std::uint64_t) override {}
  [[nodiscard]] bool report_refusal(const Command& command, const char* reason) override {
    reason_.store(reason, std::memory_order_release);
    server_.refused(command);
    return true;
  }
  void set_waker(Waker* waker) noexcept override {
    detail::SystemAtomic<std::uint64_t>(*server_.asleep())
        .store(reinterpret_cast<std::uintptr_t>(waker), std::memory_order_release);
  }
  void wake() const noexcept override {
    if (const std::uint64_t asleep = detail::load_acquired(*server_.asleep()); asleep != 0) detail::wake_engine(asleep);
  }

  /// Why the engine last refused a command; nullptr: it has refused none. Any thread may call it.
  [[nodiscard]] const char* refusal() const { return reason_.load(std::memory_order_acquire); }

 private:
  mutable Server server_;
  mutable Command ahead_{};        ///< a command that was decoded for `next_verb`
  mutable bool is_ahead_ = false;  ///< whether there is one
  std::uint64_t taken_ = 0;
  std::atomic<const char*> reason_{nullptr};
};

}  // namespace beeline
