// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Messages of teams with members on several nodes, over pair links. A short message is one chunk.

#include <vector>

#include "beeline/host/messages.hpp"
#include "host/messages/message_kernels.hpp"
#include "host/pairs/cpu_lane.hpp"
#include "host/pairs/pair_channel.hpp"

namespace beeline::detail {

/// Sizes of [sessions] channels, followed by as many for kernels if kernels have links of their own: a chunk holds the
/// longest eager message, and the depth is that of the options.
[[nodiscard]] std::vector<PairSizes> pair_sizes_for(const Team& team, const MessageOptions& options);

///   channels  [sessions] outlive the launch
///   lanes  of a GPU rank; nullptr: the stream's thread carries out the messages
void launch_pair_messages(Team& team, const LaunchOptions& options, const PairChannel* channels, const MessageEnd& sent,
                          const MessageEnd& received, CpuLanes* lanes);

}  // namespace beeline::detail
