// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The capture of a stream, asked for once in a call.

#include <cstdint>

#include "beeline/transport/stream.hpp"

namespace beeline::detail {

/// Queries a stream's capture once. While the object lives, `Stream::capture` returns that answer to this thread, since
/// a call needs it several times and a query takes time. Meanwhile no capture of the stream may begin or end.
class KnownCapture {
 public:
  explicit KnownCapture(const beeline::Stream& stream)
      : native_(stream.native()), id_(stream.capture()), outer_(innermost) {
    innermost = this;
  }
  ~KnownCapture() { innermost = outer_; }
  KnownCapture(const KnownCapture&) = delete;
  KnownCapture& operator=(const KnownCapture&) = delete;

  [[nodiscard]] std::uint64_t id() const { return id_; }
  /// The innermost object of this thread if it knows the stream of this handle, or nullptr.
  [[nodiscard]] static const KnownCapture* of(const void* native) {
    return innermost != nullptr && innermost->native_ == native ? innermost : nullptr;
  }

 private:
  static inline constinit thread_local const KnownCapture* innermost = nullptr;
  const void* const native_;
  const std::uint64_t id_;
  const KnownCapture* const outer_;
};

}  // namespace beeline::detail
