// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// What the applications' methods have in common.

#include "beeline/host/world.hpp"

namespace apps {

/// Base of an application's interface of its methods, which work on a `Data`. Constructors and destructors are
/// collective.
template <class Data>
class MethodOn {
 public:
  explicit MethodOn(Data& data) : data_(data) {}
  virtual ~MethodOn() = default;
  MethodOn(const MethodOn&) = delete;
  MethodOn& operator=(const MethodOn&) = delete;

 protected:
  [[nodiscard]] Data& data() const { return data_; }
  [[nodiscard]] beeline::World& world() const { return data_.world(); }

 private:
  Data& data_;
};

}  // namespace apps
