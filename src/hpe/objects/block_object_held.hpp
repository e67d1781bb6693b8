// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Waits for an object's lock, and with it.

#include <fmt/format.h>

#include "beeline/core/error.hpp"
#include "hpe/objects/block_object.hpp"
#include "runtime/deadline.hpp"

namespace beeline::hpe::detail {

/// Time between two looks at a condition that nothing announces.
constexpr std::int64_t poll_period_ns = 20'000;

/// Holds an object's lock.
class BlockObject::Held {
 public:
  explicit Held(BlockObject& object) : object_(object), until_ns_(now_ns() + object.deadline_ns_) { lock(); }
  ~Held() {
    if (is_held_) object_.lock_.unlock();
  }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;

  /// Releases the lock for a moment. Throws deadline, which names `awaited`, if the waits have lasted too long.
  void wait(const char* awaited) {
    object_.lock_.unlock();
    is_held_ = false;
    if (now_ns() >= until_ns_) fail(awaited);
    beeline::detail::throw_if_interrupted(-1);
    nap(poll_period_ns);
    lock();
  }

 private:
  void lock() {
    is_held_ = object_.lock_.lock(until_ns_);
    if (!is_held_) fail("another thread's transfer");
  }
  [[noreturn]] void fail(const char* awaited) const {
    throw Error(Status::deadline, fmt::format("{}: a wait for {} did not end within {} s", object_.described(), awaited,
                                              static_cast<double>(object_.deadline_ns_) / 1e9));
  }

  BlockObject& object_;
  const std::int64_t until_ns_;
  bool is_held_ = false;
};

}  // namespace beeline::hpe::detail
