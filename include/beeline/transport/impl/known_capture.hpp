// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The capture of a stream, asked for once in a call.

#include <cstdint>

#include "beeline/transport/stream.hpp"

namespace beeline::detail {

/// During its lifetime, `Stream::capture` returns to this thread what it returned at the start: a call asks several
/// times, and each query of CUDA takes time. Nothing in this lifetime may begin or end a capture of the stream.
class KnownCapture {
 public:
  explicit KnownCapture(const Stream& stream) : native_(stream.native()), id_(stream.capture()), outer_(innermost) {
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
