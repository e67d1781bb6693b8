// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Objects of host devices, and kernels on them, for tests.

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <ostream>
#include <string>
#include <utility>

#include "beeline/hpe/object.hpp"
#include "beeline/hpe/stream.hpp"

namespace beeline_test {

constexpr std::size_t block = 4096, words_of_block = block / 8;

/// Of an object of the first host device whose blocks are one page each.
inline beeline::hpe::ObjectOptions small_blocks(beeline::hpe::Protocol protocol = beeline::hpe::Protocol::protection,
                                                std::chrono::nanoseconds deadline = std::chrono::seconds(20)) {
  beeline::hpe::ObjectOptions options;
  options.device = beeline::hpe::Device::host();
  options.protocol = protocol;
  options.block_bytes = block;
  options.deadline = deadline;
  return options;
}

/// Cases for each protocol that host devices have.
class EachProtocol : public testing::TestWithParam<beeline::hpe::Protocol> {
 protected:
  [[nodiscard]] static beeline::hpe::ObjectOptions options(beeline::hpe::Hint hint = beeline::hpe::Hint::none) {
    beeline::hpe::ObjectOptions with = small_blocks(GetParam());
    with.hint = hint;
    return with;
  }
};
const auto host_protocols = testing::Values(beeline::hpe::Protocol::protection, beeline::hpe::Protocol::tracking);
/// The name of a case's protocol.
const auto protocol_name = [](const testing::TestParamInfo<beeline::hpe::Protocol>& each) {
  return std::string(beeline::hpe::name(each.param));
};

/// Matches output that has a text exactly once.
class SaidOnce {
 public:
  using is_gtest_matcher = void;
  explicit SaidOnce(std::string text) : text_(std::move(text)) {}
  bool MatchAndExplain(const std::string& output, std::ostream* /*explanation*/) const {
    const std::size_t first = output.find(text_);
    return first != std::string::npos && output.find(text_, first + 1) == std::string::npos;
  }
  void DescribeTo(std::ostream* out) const { *out << "says once: " << text_; }
  void DescribeNegationTo(std::ostream* out) const { *out << "does not say once: " << text_; }

 private:
  std::string text_;
};

/// Runs `kernel(elements, count)` in the order of the stream of a host device, as a launch does. Asynchronous.
template <class T, class Kernel>
void run_on(beeline::hpe::Stream& stream, beeline::hpe::Object<T>& object, Kernel kernel) {
  T* const elements = object.on(stream.device());
  const beeline::hpe::DeviceAccess access(stream, {&object.state()});
  stream.enqueue([elements, count = object.size(), kernel = std::move(kernel)] { kernel(elements, count); });
}

/// Adds `value` to each element.
inline auto add_to_all(std::uint64_t value) {
  return [value](std::uint64_t* elements, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) elements[i] += value;
  };
}

}  // namespace beeline_test
