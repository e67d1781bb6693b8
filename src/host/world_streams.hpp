// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Streams that a world hands out to the program. The program may keep them longer than the world lives.

#include <memory>

#include "beeline/transport/stream.hpp"

namespace beeline {

/// Thread-safe.
class WorldStreams {
 public:
  WorldStreams();
  ~WorldStreams();
  WorldStreams(const WorldStreams&) = delete;
  WorldStreams& operator=(const WorldStreams&) = delete;
  /// Returns the program's stream, which destroys `own` unless `end` has done so.
  [[nodiscard]] std::unique_ptr<Stream> hand_out(std::unique_ptr<Stream> own);
  /// Whether all these streams have drained.
  [[nodiscard]] bool drained() const;
  /// Ends the streams' waits for signals after the world has failed.
  void release_waits();
  /// Drops the errors of the streams' work, which belongs to a world that has failed.
  void drop_results();
  /// Destroys the streams that the program still holds, after waiting for their work. From then on calls on the
  /// program's stream objects throw invalid_argument, and their destructors do nothing.
  void end();

 private:
  class Handed;
  template <class Action>
  void for_each(const Action& action) const;
  struct Living;
  const std::shared_ptr<Living> living_;
};

}  // namespace beeline
