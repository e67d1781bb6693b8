// SPDX-License-Identifier: Apache-2.0
#include "host/collectives/node_movement.hpp"

#include "beeline/collectives/impl/movement_handshake.hpp"
#include "host/pairs/pair_transfers.hpp"

namespace beeline::detail {

namespace {

/// Whether all members get the same data from `origin`: then the data cross to each node once.
bool is_spread(const MovementPlan& plan) {
  return plan.call.operation == Operation::broadcast || plan.call.operation == Operation::allgather;
}

bool is_chain(const MovementPlan& plan) { return plan.call.algorithm == Algorithm::chain_across_nodes; }

/// The member of `node` that receives the data of `origin`, which is on another node, and forwards them.
std::uint32_t relay(const NodeMap& nodes, std::uint32_t node, std::uint32_t origin) {
  return nodes.node_leader(node, origin, origin);
}

/// Along a chain of nodes, the relays of the previous node and of the next; `no_peer` at the ends of the chain.
struct ChainNeighbors {
  std::uint32_t before, behind;

  ChainNeighbors(const NodeMap& nodes, std::uint32_t here, std::uint32_t origin)
      : before(relay(nodes, (here + nodes.nodes() - 1) % nodes.nodes(), origin)),
        behind(relay(nodes, (here + 1) % nodes.nodes(), origin)) {
    if (behind == origin) behind = no_peer;
  }
};

/// Adds this member's own data to the transfers.
void send_own(PairTransfers& transfers, const Context& ctx, const NodeMap& nodes, const MovementPlan& plan) {
  const std::uint32_t here = nodes.node_of(ctx.rank);
  const std::uint32_t only = is_chain(plan) ? ChainNeighbors(nodes, here, ctx.rank).behind : no_peer;
  for (std::uint32_t distance = 1; distance < ctx.size; ++distance) {
    const std::uint32_t peer = peer_ahead(ctx, distance), there = nodes.node_of(peer);
    if (is_spread(plan) && there != here && relay(nodes, there, ctx.rank) != peer) continue;
    if (there != here && only != no_peer && only != peer) continue;
    const Piece<const std::byte> piece = plan.outgoing(ctx, peer);
    if (piece.bytes != 0 || plan.varies()) transfers.send({peer, ctx.rank, piece.at, piece.bytes});
  }
}

/// Adds this member's receipt from `origin`, and the forwarding if this member is the relay.
void receive_from(PairTransfers& transfers, const Context& ctx, const NodeMap& nodes, const MovementPlan& plan,
                  std::uint32_t origin) {
  const Piece<std::byte> piece = plan.incoming(ctx, origin);
  if (piece.bytes == 0 && !plan.varies()) return;
  const std::uint32_t here = nodes.node_of(ctx.rank);
  const bool is_relayed = is_spread(plan) && nodes.node_of(origin) != here;
  const std::uint32_t bringer = is_relayed ? relay(nodes, here, origin) : origin;
  const bool is_relay = is_relayed && bringer == ctx.rank;
  const ChainNeighbors chain(nodes, here, origin);
  const std::uint32_t sender = !is_relay ? bringer : is_chain(plan) ? chain.before : origin;
  const int receipt = transfers.receive({sender, origin, piece.at, piece.bytes});
  if (!is_relay) return;
  if (is_chain(plan) && chain.behind != no_peer) transfers.send({chain.behind, origin, piece.at, piece.bytes, receipt});
  for (const std::uint32_t member : nodes.members_of(here))
    if (member != ctx.rank) transfers.send({member, origin, piece.at, piece.bytes, receipt});
}

}  // namespace

Status move_across(const PairLinks& links, const NodeMap& nodes, const MovementPlan& plan) {
  const Context& ctx = links.context();
  const Piece<const std::byte> own = plan.outgoing(ctx, ctx.rank);
  const Piece<std::byte> kept = plan.incoming(ctx, ctx.rank);
  if (own.bytes == kept.bytes && own.bytes != 0 && own.at != kept.at) std::memmove(kept.at, own.at, own.bytes);
  PairTransfers transfers(links, plan.call.packed(), plan.call.count);
  send_own(transfers, ctx, nodes, plan);
  for (std::uint32_t distance = 1; distance < ctx.size; ++distance)
    receive_from(transfers, ctx, nodes, plan, peer_ahead(ctx, distance));
  return transfers.run({Operation::collective, Operation::collective}, true,
                       [&](const PairReceipt& receipt, const ChunkHead& chunk) {
                         const Status status = links.check_call(receipt.peer, chunk);
                         if (status != Status::ok || chunk.origin != receipt.origin) return status;
                         return compare_lengths(ctx, receipt.peer, told_sent, receipt.bytes, chunk.total);
                       });
}

}  // namespace beeline::detail
