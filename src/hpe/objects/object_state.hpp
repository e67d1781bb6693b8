// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// What launches and accesses need of an object, whatever its protocol.

#include <fmt/format.h>

#include <cstddef>
#include <memory>
#include <string>

#include "beeline/hpe/object.hpp"
#include "hpe/objects/host_view.hpp"

namespace beeline::hpe {

class ObjectState {
 public:
  virtual ~ObjectState() = default;
  [[nodiscard]] virtual std::byte* data() const = 0;
  /// Bytes that the program has asked for.
  [[nodiscard]] virtual std::size_t bytes() const = 0;
  /// For errors, as in "the object at 0x7f0000000000 of 4096 bytes".
  [[nodiscard]] std::string described() const {
    return fmt::format("the object at {} of {} bytes", static_cast<const void*>(data()), bytes());
  }
  [[nodiscard]] virtual Device home() const = 0;
  [[nodiscard]] virtual std::byte* address_on(Device device) = 0;
  [[nodiscard]] virtual ObjectStatistics statistics() const = 0;

  /// Hands the object to work that the caller then puts on the stream, with what the device lacks. Each call is
  /// followed by `release`.
  virtual void acquire(Stream& stream) = 0;
  /// The object belongs to the host again once the stream has passed this point.
  virtual void release(Stream& stream) = 0;

  /// As `HostAccess`.
  virtual void begin_access(detail::Range range, Access access) = 0;
  virtual void end_access() noexcept = 0;

  /// Makes the object unknown, so that it can be destroyed. Throws deadline while work or accesses use it,
  /// invalid_argument at once if the accesses are the calling thread's own.
  virtual void close() = 0;
};

namespace detail {

class StreamState;

/// Throws unavailable, with what to do, while a graph captures the stream: a graph would repeat the transfers of its
/// capture, and an event in a graph does not say when the graph's kernels have ended.
void refuse_captured_use(StreamState& stream);

/// Throws as `Object`.
[[nodiscard]] std::unique_ptr<ObjectState> make_object(std::size_t bytes, const ObjectOptions& options);
[[nodiscard]] std::unique_ptr<ObjectState> make_managed_object(std::size_t bytes, const ObjectOptions& options,
                                                               Device device);

}  // namespace detail
}  // namespace beeline::hpe
