// SPDX-License-Identifier: Apache-2.0
#include "host/messages/pair_messages.hpp"

#include <algorithm>

#include "beeline/collectives/impl/message_chunks.hpp"
#include "beeline/collectives/impl/words.hpp"
#include "beeline/host/launch.hpp"
#include "host/pairs/pair_transfers.hpp"

namespace beeline::detail {

namespace {

std::uint64_t header_of(const MessageEnd& end) { return message_header(end.bytes, end.blocks, end.tag, end.elements); }

/// Slice `index` of one end.
Range slice_of(const MessageEnd& end, unsigned index) { return part_of(end.bytes, end.blocks, index, 16); }

/// Moves slice `index` of one or both ends by the links of session `index`.
Status move_slice(const PairLinks& links, unsigned index, const MessageEnd& sent, const MessageEnd& received) {
  PairTransfers transfers(links, header_of(sent), 0);
  if (index < sent.blocks) {
    const Range slice = slice_of(sent, index);
    transfers.send({sent.peer, links.context().rank, sent.data + slice.first, slice.count});
  }
  if (index < received.blocks) {
    const Range slice = slice_of(received, index);
    transfers.receive({received.peer, received.peer, received.data + slice.first, slice.count});
  }
  return transfers.run({Operation::receive, Operation::send}, false,
                       [&](const PairReceipt& receipt, const ChunkHead& chunk) {
                         return check_message(links, receipt.peer, chunk, header_of(received), receipt.bytes);
                       });
}

/// One thread moves the slices, one after the other. The failing operation records the failure.
struct PairMessageKernel {
  template <class Grid>
  void operator()(Grid& grid, const Context& ctx, const PairChannel* channels, MessageEnd sent,
                  MessageEnd received) const {
    if (grid.thread_rank() != 0) return;
    for (unsigned index = 0; index < std::max(sent.blocks, received.blocks); ++index)
      if (move_slice({ctx, channels[index]}, index, sent, received) != Status::ok) return;
  }
};

}  // namespace

std::vector<PairSizes> pair_sizes_for(const Team& team, const MessageOptions& options) {
  constexpr std::size_t all = std::size_t{1} << 20, least = 4096, most = std::size_t{64} << 10, line = 64;
  const std::size_t pairs = static_cast<std::size_t>(team.size()) * std::max(1u, options.sessions / 2);
  const std::size_t share = all / (options.depth * pairs);
  const std::size_t chunk = std::max(options.eager_bytes, std::clamp(share, least, most));
  const std::size_t channels = std::size_t{options.sessions} * (kernels_share_links(team) ? 1 : 2);
  return std::vector(channels, PairSizes{options.depth, (chunk + line - 1) / line * line});
}

void launch_pair_messages(Team& team, const LaunchOptions& options, const PairChannel* channels, const MessageEnd& sent,
                          const MessageEnd& received, CpuLanes* lanes) {
  if (lanes == nullptr) return launch(team, options, PairMessageKernel{}, channels, sent, received);
  Stream& stream = options.stream == nullptr ? team.world().stream() : *options.stream;
  const LaneVectors vectors{received.data, received.blocks == 0 ? 0 : received.bytes, sent.data,
                            sent.blocks == 0 ? 0 : sent.bytes};
  lanes->of(stream).call(stream, vectors,
                         [channels, sent, received](const Context& ctx, std::byte* to, const std::byte* from) {
                           MessageEnd sending = sent, receiving = received;
                           sending.data = const_cast<std::byte*>(from), receiving.data = to;
                           LoneThread alone;
                           PairMessageKernel{}(alone, ctx, channels, sending, receiving);
                         });
}

}  // namespace beeline::detail
