// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The common parts of the applications' methods.

#include <memory>
#include <string>
#include <vector>

#include "beeline/core/config.hpp"
#include "beeline/core/error.hpp"
#include "beeline/host/world.hpp"

namespace apps {

/// Base of each application's method interface; its methods work on a `Data`. Constructors and destructors are
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

/// The description of a method.
struct MethodText {
  std::string name, summary;
  std::string id = {};                                       ///< control/path/protocol, if one id describes all of it
  std::string (*why_not)(const beeline::Config&) = nullptr;  ///< see `reason`; nullptr: it runs in every world

  /// Why the method does not run in a world of this configuration; empty if it does.
  [[nodiscard]] std::string reason(const beeline::Config& config) const {
    return why_not == nullptr ? "" : why_not(config);
  }
};

/// A method's description and its factory.
template <class Method, class Data>
struct MethodInfo : MethodText {
  std::unique_ptr<Method> (*make)(Data&);

  template <class Made>
  [[nodiscard]] static MethodInfo of(MethodText text) {
    return {std::move(text), [](Data& data) -> std::unique_ptr<Method> { return std::make_unique<Made>(data); }};
  }
};

/// The method named `name` among `all`. Throws invalid_argument, listing the known names, if there is none.
template <class Info>
[[nodiscard]] const Info& find_method(const std::vector<Info>& all, const std::string& name) {
  std::string known;
  for (const Info& info : all) {
    if (info.name == name) return info;
    known += (known.empty() ? "" : ", ") + info.name;
  }
  throw beeline::Error(beeline::Status::invalid_argument, "--method: no method '" + name + "'; valid: " + known);
}

/// Measures every method on every size, in a `Session` for each size, made with `where`, `options` and the size.
/// Returns whether every result was right.
///   where  the world, or the devices
template <class Session, class Where, class Options, class Size>
[[nodiscard]] bool measure_on(Where& where, const Options& options, const std::vector<Size>& sizes) {
  bool is_right = true;
  for (const Size& size : sizes) {
    Session session(where, options, size);
    for (const auto& info : options.methods) is_right = session.run(info) && is_right;
  }
  return is_right;
}

/// If a wait of one of this rank's CPU threads failed, throws the failure as the world knows it.
inline void require_ok(beeline::World& world, beeline::Status status, const char* what) {
  if (status == beeline::Status::ok) return;
  world.check();
  throw beeline::Error(status, what, world.rank());
}

}  // namespace apps
