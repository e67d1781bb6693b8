// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// `beeline.Stream`: an in-order queue of work, with the Python objects that its work still uses.

#include <nanobind/nanobind.h>

#include <memory>
#include <vector>

#include "joined_world.hpp"

namespace beeline::python {

class StreamObject {
 public:
  /// The rank's default stream.
  explicit StreamObject(std::shared_ptr<JoinedWorld> world);
  /// A new one.
  StreamObject(std::shared_ptr<JoinedWorld> world, std::unique_ptr<Stream> owned);
  StreamObject(StreamObject&&) = default;
  ~StreamObject();

  [[nodiscard]] const std::shared_ptr<JoinedWorld>& joined() const { return world_; }
  /// Throws invalid_argument when the world was left.
  [[nodiscard]] Stream& stream() const;
  /// Keeps `object` alive until the stream's work is over, as a later `keep` or `let_go` finds.
  void keep(nanobind::object object);
  void let_go() { used_.clear(); }

 private:
  std::shared_ptr<JoinedWorld> world_;
  std::unique_ptr<Stream> owned_;
  Stream* stream_;
  std::vector<nanobind::object> used_;
};

}  // namespace beeline::python
