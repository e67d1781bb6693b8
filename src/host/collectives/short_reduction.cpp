// SPDX-License-Identifier: Apache-2.0
#include "host/collectives/short_reduction.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>

#include "beeline/device/impl/deadline_extension.hpp"
#include "host/pairs/call_chunks.hpp"

namespace beeline::detail {

namespace {

using Sum = std::array<std::byte, short_bytes>;

class ShortReducing {
 public:
  ShortReducing(const PairLinks& links, const NodeMap& nodes, const NodeReduction& reduction)
      : chunks_(links), ctx_(links.context()), nodes_(nodes), what_(reduction), here_(nodes.node_of(ctx_.rank)),
        first_(nodes.first_of(here_)), others_(nodes.members_of(here_).subspan(1)),
        waiting_(extend_deadline(ctx_, ctx_.rank == first_ ? most_extension_steps / 2 : most_extension_steps)),
        later_(links, waiting_), bytes_(reduction.count * reduction.element_bytes),
        wide_bytes_(reduction.count * reduction.reducer->wide_bytes) {}

  [[nodiscard]] Status run() {
    if (ctx_.rank == first_) return lead();
    const Status sent = chunks_.send(first_, head_of(bytes_), what_.source);
    if (sent != Status::ok) return sent;
    return later_.take(first_, [this](const std::byte* result) { copy(what_.destination, result, bytes_); });
  }

 private:
  [[nodiscard]] Status lead() {
    if (const Status status = add_up(); status != Status::ok) return status;
    for (std::uint32_t node = 0; node < nodes_.nodes(); ++node)
      if (node != here_)
        if (const Status status = chunks_.send(nodes_.first_of(node), head_of(wide_bytes_), sum_.data());
            status != Status::ok)
          return status;
    if (const Status status = merge(); status != Status::ok) return status;
    what_.reducer->finish(what_.reduction, ctx_.size, whole_.data(), what_.destination, what_.count);
    for (const std::uint32_t member : others_)
      if (const Status status = chunks_.send(member, head_of(bytes_), what_.destination); status != Status::ok)
        return status;
    return Status::ok;
  }

  /// Computes the node's sum, beginning with the vector of this member, the node's first.
  [[nodiscard]] Status add_up() {
    what_.reducer->start(sum_.data(), what_.source, what_.count);
    for (const std::uint32_t member : others_) {
      const auto add = [this](const std::byte* vector) {
        what_.reducer->add(what_.reduction, sum_.data(), vector, what_.count);
      };
      if (const Status status = chunks_.take(member, add); status != Status::ok) return status;
    }
    return Status::ok;
  }

  /// Combines all nodes' sums, in the order of nodes.
  [[nodiscard]] Status merge() {
    for (std::uint32_t node = 0; node < nodes_.nodes(); ++node) {
      const auto add = [this, node](const std::byte* sum) {
        if (node == 0)
          copy(whole_.data(), sum, wide_bytes_);
        else
          what_.reducer->merge(what_.reduction, whole_.data(), sum, what_.count);
      };
      Status status = Status::ok;
      if (node == here_)
        add(sum_.data());
      else
        status = later_.take(nodes_.first_of(node), add);
      if (status != Status::ok) return status;
    }
    return Status::ok;
  }

  [[nodiscard]] ChunkHead head_of(std::size_t bytes) const {
    return {what_.call.packed(), what_.call.count, bytes, bytes, ctx_.rank};
  }
  static void copy(std::byte* to, const std::byte* from, std::size_t bytes) {
    if (bytes != 0) std::memcpy(to, from, bytes);
  }

  const CallChunks chunks_;
  const Context& ctx_;
  const NodeMap& nodes_;
  const NodeReduction& what_;
  const std::uint32_t here_, first_;
  const std::span<const std::uint16_t> others_;  ///< members of this node except the first
  /// Context with the extended deadline: a node's first member waits for its members, then for other nodes' first
  /// members; the members wait for the first member.
  const Context waiting_;
  const CallChunks later_;  ///< chunks from members that wait themselves
  const std::size_t bytes_, wide_bytes_;
  alignas(64) Sum sum_, whole_;
};

}  // namespace

bool is_short(const PairLinks& links, const NodeReduction& reduction) {
  const std::size_t most = std::min(short_bytes, links.channel().chunk_bytes());
  if (reduction.count == 0) return true;
  return reduction.call.operation == Operation::allreduce && reduction.call.algorithm == Algorithm::across_nodes &&
         reduction.count <= most / std::max(reduction.reducer->wide_bytes, reduction.element_bytes);
}

Status reduce_short(const PairLinks& links, const NodeMap& nodes, const NodeReduction& reduction) {
  return ShortReducing(links, nodes, reduction).run();
}

}  // namespace beeline::detail
