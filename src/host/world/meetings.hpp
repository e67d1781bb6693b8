// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The collective calls of the whole world that ranks are in.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "beeline/core/wait_policy.hpp"
#include "host/world/areas.hpp"
#include "host/world/membership.hpp"
#include "host/world/teams.hpp"

namespace beeline {

/// Publishes the call that this rank is in, and reads the calls of other ranks. Thread-safe.
class Meetings {
 public:
  /// Reads published data of a rank on another node, at its address `at`; false without an answer within a second.
  using ReadRemote = std::function<bool(int other, void* to, const void* at, std::size_t bytes)>;
  Meetings(const Membership& membership, const Areas& areas, const Teams& teams, ReadRemote read_remote)
      : membership_(membership), areas_(areas), teams_(teams), read_remote_(std::move(read_remote)) {}

  /// Publishes the call that this rank is in; nullptr: none.
  void show(const char* call) const;
  /// The call that a rank has published; empty: none, or the rank does not answer.
  [[nodiscard]] std::string call_of(int other) const;
  /// The calls that other members of a team are in, one line each: of members on this node, and of members on other
  /// nodes for which `waits` wait.
  [[nodiscard]] std::string calls_in(std::uint32_t team, const std::vector<WaitRecord>& waits) const;

  /// A collective call of all ranks, for the lifetime of this object. Publishes the call, and ends the wait for the
  /// other ranks once the world is aborted: a rank that aborts the world does not reach the call.
  class Call final : detail::WaitInterrupt {
   public:
    Call(const Meetings& meetings, const char* call);
    ~Call();
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;
    /// The destructor then keeps the call's name published, for the errors of other ranks.
    void fail() { has_failed_ = true; }
    [[nodiscard]] bool was_aborted() const { return was_aborted_; }

   private:
    bool ends_wait(std::uint64_t now_ns) noexcept override;
    const Meetings& meetings_;
    detail::WaitInterrupt* const outer_;
    bool has_failed_ = false, was_aborted_ = false;
  };

 private:
  const Membership& membership_;
  const Areas& areas_;
  const Teams& teams_;
  const ReadRemote read_remote_;
};

}  // namespace beeline
