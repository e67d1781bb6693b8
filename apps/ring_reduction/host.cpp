// SPDX-License-Identifier: Apache-2.0
/// @file
/// Scheme host: the CPU drives. In each step it starts the copies of all chunks, signals the end of each copy to the
/// next rank, starts the sum of each chunk that arrives, and waits for the sums before the next step. On a GPU the copy
/// engine copies, on a host rank a copying thread. Source: seed 003, host-driven networking.

#include "add_arrived.hpp"
#include "beeline/core/error.hpp"
#include "beeline/device/signal.hpp"
#include "scheme.hpp"

namespace ring_reduction {

namespace {

class Host final : public Scheme {
 public:
  explicit Host(Vectors& vectors)
      : Scheme(vectors), ring_(vectors.ring(vectors.copy_chunk_bytes())), transfers_(transfers(ring_)),
        arrived_(world(), 1, beeline::Heap::pinned), copies_(world().make_stream()) {
    for (std::uint32_t chunk = 0; chunk < ring_.chunks; ++chunk) copied_.push_back(copies_->make_event());
  }

  void run(int reductions) override {
    for (int reduction = 0; reduction < reductions; ++reduction)
      for (std::size_t first = 0; first < transfers_.size(); first += ring_.chunks) run_step(&transfers_[first]);
  }
  const Ring& ring() const override { return ring_; }

 private:
  void run_step(const Transfer* step) {
    for (std::uint32_t chunk = 0; chunk < ring_.chunks; ++chunk) start_copy(step[chunk]);
    for (std::uint32_t chunk = 0; chunk < ring_.chunks; ++chunk) {
      world().synchronize(*copied_[chunk]);
      ++sequence_;
      beeline::signal(beeline::Thread{}, world().host_context(), arrived_.data(), sequence_, ring_.next());
      await_arrival();
      if (step[chunk].reduces) enqueue_sum(vectors(), step[chunk]);
    }
    world().synchronize();
  }

  void start_copy(const Transfer& transfer) {
    if (transfer.sends.count > 0)
      world().copy(destination_of(vectors(), transfer, ring_.next()), vectors().data() + transfer.sends.first,
                   transfer.sends.count * sizeof(float), *copies_);
    copies_->record(*copied_[transfer.chunk]);
  }

  void await_arrival() {
    const beeline::Status status = beeline::wait(beeline::Thread{}, world().host_context(), arrived_.data(),
                                                 beeline::Compare::greater_equal, sequence_, ring_.previous());
    apps::require_ok(world(), status, "waiting for the previous rank's chunk");
  }

  Ring ring_;
  std::vector<Transfer> transfers_;
  beeline::SymmetricArray<std::uint64_t> arrived_;  ///< chunks from the previous rank, in all reductions
  std::unique_ptr<beeline::Stream> copies_;
  std::vector<std::unique_ptr<beeline::Event>> copied_;  ///< [chunks]
  std::uint64_t sequence_ = 0;
};

}  // namespace

SchemeInfo host() {
  return SchemeInfo::of<Host>({"host",
                               "the CPU starts every copy and every sum, and waits for them before the next step",
                               "host/copy_engine/signal"});
}

}  // namespace ring_reduction
