// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The streams that a world hands out to the program, which may keep them longer than the world.

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
  /// What the program gets: it destroys `own`, unless `end` has done so.
  [[nodiscard]] std::unique_ptr<Stream> hand_out(std::unique_ptr<Stream> own);
  /// Whether all of them have drained.
  [[nodiscard]] bool drained() const;
  /// Ends the streams' waits for signals after the world has failed.
  void release_waits();
  /// Forgets how their work has ended: it belongs to a world that has failed.
  void drop_results();
  /// Destroys the streams that the program still has, which waits for their work. From then on their calls throw
  /// invalid_argument, and their destructors do nothing.
  void end();

 private:
  class Handed;
  template <class Action>
  void for_each(const Action& action) const;
  struct Living;
  const std::shared_ptr<Living> living_;
};

}  // namespace beeline
