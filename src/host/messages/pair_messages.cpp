// SPDX-License-Identifier: Apache-2.0
#include "host/messages/pair_messages.hpp"

#include <algorithm>

#include "beeline/host/launch.hpp"
#include "host/pairs/pair_transfers.hpp"

namespace beeline::detail {

namespace {

std::uint64_t header_of(const MessageEnd& end) { return message_header(end.bytes, end.blocks, end.tag, end.elements); }

struct PairMessageKernel {
  template <class Grid>
  void operator()(Grid& grid, const Context& ctx, PairChannel channel, MessageEnd sent, MessageEnd received) const {
    if (grid.thread_rank() != 0) return;
    const PairLinks links(ctx, channel);
    PairTransfers transfers(links, header_of(sent), 0);
    if (sent.blocks != 0) transfers.send({sent.peer, ctx.rank, sent.data, sent.bytes});
    if (received.blocks != 0) transfers.receive({received.peer, received.peer, received.data, received.bytes});
    const auto check = [&](const PairReceipt& receipt, const ChunkHead& chunk) {
      const std::uint64_t expected = header_of(received);
      if (is_same_message(chunk.packed, expected)) return Status::ok;
      const Awaited awaited{Operation::receive, receipt.peer, links.awaited_number(receipt.peer), expected};
      return give_up(ctx, awaited, chunk.packed, 0, Status::invalid_argument);
    };
    // The failing operation records the failure.
    static_cast<void>(transfers.run({Operation::receive, Operation::send}, false, check));
  }
};

}  // namespace

PairSizes pair_sizes_for(const Team& team, const MessageOptions& options) {
  constexpr std::size_t all = std::size_t{1} << 20, least = 4096, most = std::size_t{64} << 10, line = 64;
  const std::size_t share = all / (options.depth * static_cast<std::size_t>(team.size()));
  const std::size_t chunk = std::max(options.eager_bytes, std::clamp(share, least, most));
  return {options.depth, (chunk + line - 1) / line * line};
}

void launch_pair_messages(Team& team, const LaunchOptions& options, const PairChannel& channel, const MessageEnd& sent,
                          const MessageEnd& received, CpuLanes* lanes) {
  if (lanes == nullptr) return launch(team, options, PairMessageKernel{}, channel, sent, received);
  Stream& stream = options.stream == nullptr ? team.world().stream() : *options.stream;
  const LaneVectors vectors{received.data, received.blocks == 0 ? 0 : received.bytes, sent.data,
                            sent.blocks == 0 ? 0 : sent.bytes};
  lanes->of(stream).call(stream, vectors,
                         [channel, sent, received](const Context& ctx, std::byte* to, const std::byte* from) {
                           MessageEnd sending = sent, receiving = received;
                           sending.data = const_cast<std::byte*>(from), receiving.data = to;
                           LoneThread alone;
                           PairMessageKernel{}(alone, ctx, channel, sending, receiving);
                         });
}

}  // namespace beeline::detail
