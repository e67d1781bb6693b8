// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Which collective calls of the whole world ranks are in.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "beeline/core/wait_policy.hpp"
#include "host/world/areas.hpp"
#include "host/world/membership.hpp"
#include "host/world/teams.hpp"

namespace beeline {

/// Publishes the call that this rank is in, and reads those of others. Any thread may ask.
class Meetings {
 public:
  /// Reads what a rank of another node publishes at `at`; false if it does not answer within a second.
  using ReadRemote = std::function<bool(int other, void* to, const void* at, std::size_t bytes)>;
  Meetings(const Membership& membership, const Areas& areas, const Teams& teams, ReadRemote read_remote)
      : membership_(membership), areas_(areas), teams_(teams), read_remote_(std::move(read_remote)) {}

  /// Shows the others which such call this rank is in; nullptr: none.
  void show(const char* call) const;
  /// The call that a rank has shown; empty: none, or it does not answer.
  [[nodiscard]] std::string call_of(int other) const;
  /// The calls that members of a team are in, beside this rank, a line each: members on this node, and those on others
  /// that `waits` wait for.
  [[nodiscard]] std::string calls_in(std::uint32_t team, const std::vector<WaitRecord>& waits) const;

  /// A call in which all ranks meet. It shows the call to the others, and ends the wait for them once the world is
  /// aborted: the ranks that abort it do not come.
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
