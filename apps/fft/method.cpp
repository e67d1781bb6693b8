// SPDX-License-Identifier: Apache-2.0
#include "method.hpp"

#include <bit>

#include "beeline/hpe/copy.hpp"
#include "kernels.hpp"

namespace fft {

namespace {

/// Kernels read the partner's elements in its memory.
class Unified final : public Method {
 public:
  using Method::Method;

 protected:
  const Complex* partner_elements(std::size_t /*number*/, std::size_t partner) override {
    return parts().elements(partner);
  }
};

/// A copy brings the partner's elements; kernels read them in their own device's memory.
class Copies final : public Method {
 public:
  explicit Copies(const Setup& setup) : Method(setup) {
    for (const beeline::hpe::Device device : setup.devices) copied_.emplace_back(device, parts().bytes());
  }

 protected:
  const Complex* partner_elements(std::size_t number, std::size_t partner) override {
    beeline::hpe::copy(copied_[number].data(), parts().elements(partner), parts().bytes(), parts().stream(number));
    return copied_[number].as<Complex>();
  }

 private:
  std::vector<beeline::hpe::DeviceMemory> copied_;
};

std::string why_no_local_transform(const beeline::Config& config) {
  return apps::devices_for(config).front().is_gpu() ? why_no_cufft() : "";
}

std::string why_not_unified(const beeline::Config& config) {
  const std::string why = why_no_local_transform(config);
  return why.empty() ? apps::why_no_reach(config) : why;
}

}  // namespace

Method::Method(const Setup& setup)
    : MethodOn(setup), parts_(setup), outer_splits_(setup.outer_splits()), splits_(setup.splits()) {
  for (const beeline::hpe::Device device : setup.devices)
    local_.push_back(make_local_transform(device, setup.part() / splits_, splits_));
}

void Method::exchange(std::size_t distance) {
  parts_.join_streams();
  const auto log_length = static_cast<unsigned>(std::countr_zero(2 * distance * parts_.count()));
  for (std::size_t number = 0; number < parts_.devices(); ++number) {
    const bool is_upper = (number & distance) != 0;
    const Complex* const own = parts_.elements(number);
    const Complex* const partners = partner_elements(number, number ^ distance);
    const Share share{parts_.count(), number % distance * parts_.count(), log_length, is_upper};
    const auto enqueue = distance == 1 && outer_splits_ > 1 ? enqueue_split_butterflies : enqueue_butterflies;
    enqueue(parts_.stream(number), parts_.other(number), is_upper ? partners : own, is_upper ? own : partners, share);
  }
  parts_.flip();
}

void Method::transform_parts() {
  if (!local_.front()->is_in_place()) parts_.join_streams();  // a partner reads the other buffer in the last step
  bool flips = false;
  for (std::size_t number = 0; number < parts_.devices(); ++number) {
    Complex* const elements = parts_.elements(number);
    if (splits_ > outer_splits_)
      enqueue_splits_inside(parts_.stream(number), elements, outer_splits_,
                            static_cast<unsigned>(std::countr_zero(parts_.count() / outer_splits_)));
    flips = local_[number]->enqueue(parts_.stream(number), elements, parts_.other(number)) != elements;
  }
  if (flips) parts_.flip();
}

void Method::run(int transforms, bool communicate) {
  for (int transform = 0; transform < transforms; ++transform) {
    if (communicate)
      for (std::size_t distance = parts_.devices() / 2; distance > 0; distance /= 2) exchange(distance);
    transform_parts();
  }
  parts_.synchronize();
}

const std::vector<MethodInfo>& methods() {
  const auto text = [](const char* name, const char* summary, auto* why_not) {
    return apps::MethodText{.name = name, .summary = summary, .why_not = why_not};
  };
  static const std::vector<MethodInfo> all{
      {MethodInfo::of<Unified>(text("one_device", "the first device alone: no exchange", why_no_local_transform)),
       true},
      {MethodInfo::of<Copies>(
          text("copies", "a copy brings the partner's part before each step between devices", why_no_local_transform))},
      {MethodInfo::of<Unified>(text("unified", "kernels read the partner's part in its memory", why_not_unified))}};
  return all;
}

}  // namespace fft
