// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The channel's memory in calls in which members send each other chunks ahead of the chunks for which they wait.

#include "beeline/collectives/impl/combine.hpp"
#include "beeline/collectives/session.hpp"
#include "beeline/selection/preferences.hpp"

namespace beeline::detail {

/// The memory in which a session's chunks arrive: four cells for the parts from each other member, and four for
/// results. A chunk uses the cell of the fourth chunk before it. The sender of a part has seen the signal of the part's
/// owner for the last chunk but one; before that signal the owner had combined or copied the fourth chunk. Results are
/// copied out three chunks later.
class PushedPlaces {
 public:
  static constexpr std::uint32_t turns = 4;
  enum Half : std::uint32_t { parts, results };

  template <class Group>
  BEELINE_HOST_DEVICE explicit PushedPlaces(const Session<Group>& session)
      : ctx_(session.context()), memory_{session.staging(parts), session.staging(results)},
        others_(session.context().size - 1), bytes_(session.staging_bytes() / (turns * others_)) {
    bytes_ &= ~(bytes_ < 128 ? std::size_t{15} : std::size_t{127});  // multiples of a cache line, if the memory has
                                                                     // room for one
    if (bytes_ > selection::pushed_chunk_bytes) bytes_ = selection::pushed_chunk_bytes;
  }

  /// Size in bytes of one member's part of a chunk.
  [[nodiscard]] BEELINE_HOST_DEVICE std::size_t bytes() const { return bytes_; }
  /// The parts of chunk `number` that have arrived, in the order of the other members' ranks.
  [[nodiscard]] BEELINE_HOST_DEVICE CollectedVectors come(Half half, std::uint32_t number) const {
    return {first(half, number), bytes_, others_};
  }
  /// The cell for this member's part at `member`, as an address of this rank.
  [[nodiscard]] BEELINE_HOST_DEVICE std::byte* at(Half half, std::uint32_t member, std::uint32_t number) const {
    return ctx_.translate(first(half, number) + number_beside(member, ctx_.rank) * bytes_, member);
  }

 private:
  [[nodiscard]] BEELINE_HOST_DEVICE std::byte* first(Half half, std::uint32_t number) const {
    return memory_[half] + number % turns * others_ * bytes_;
  }

  const Context& ctx_;
  std::byte* memory_[2];
  std::uint32_t others_;
  std::size_t bytes_;
};

}  // namespace beeline::detail
