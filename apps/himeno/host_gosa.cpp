// SPDX-License-Identifier: Apache-2.0
#include "host_gosa.hpp"

#include "common/method.hpp"

namespace himeno {

namespace {

/// Adds up the blocks' sums and posts the total to this rank's CPU thread.
struct PostSum {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(const Grid& grid, const beeline::Context& ctx, Sums sums, Mailbox mailbox,
                                      std::uint64_t tag, unsigned slots, unsigned blocks) const {
    const double total = total_of_blocks(grid.block(), sums.threads, sums, 0, slots, blocks);
    if (grid.block().thread_rank() == 0) post_sum(ctx, mailbox, tag, total, ctx.rank);
  }
};

}  // namespace

HostGosa::HostGosa(Domain& domain)
    : domain_(domain), words_(domain.world(), mailbox_slots * static_cast<std::size_t>(domain.world().size()) * 2,
                              beeline::Heap::pinned),
      arrived_(domain.world(), static_cast<std::size_t>(domain.world().size()), beeline::Heap::pinned),
      mailbox_{words_.data(), arrived_.data(), domain.mailbox().total} {}

void HostGosa::enqueue_sum(const Step& step, unsigned slots, unsigned blocks) {
  beeline::launch(domain_.world(), {}, PostSum{}, domain_.sums(), mailbox_, step.tag(), slots, blocks);
}

void HostGosa::exchange(const Step& step) {
  const beeline::Context& ctx = domain_.world().host_context();
  double sum = 0;
  check(receive_sum(ctx, mailbox_, step.tag(), ctx.rank, sum));
  for (std::uint32_t peer = 0; peer < ctx.size; ++peer)
    if (peer != ctx.rank) post_sum(ctx, mailbox_, step.tag(), sum, peer);
  if (step.iteration > 0) collect_tag(step.tag() - 1);
}

void HostGosa::finish(const Step& last) { collect_tag(last.tag()); }

void HostGosa::collect_tag(std::uint64_t tag) {
  check(himeno::collect(beeline::Thread{}, domain_.world().host_context(), mailbox_, tag));
}

void HostGosa::check(beeline::Status status) {
  apps::require_ok(domain_.world(), status, "waiting for the ranks' sums of gosa");
}

}  // namespace himeno
