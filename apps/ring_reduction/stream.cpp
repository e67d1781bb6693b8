// SPDX-License-Identifier: Apache-2.0
/// @file
/// Scheme stream: the CPU only enqueues. One stream waits until the data of a chunk are available, copies the chunk to
/// the next rank, and sets a signal there. The default stream waits for the signals of arriving chunks and adds the
/// chunks. No step waits for the CPU. Source: seed 003, GPUDirect Async (GDS).

#include "add_arrived.hpp"
#include "beeline/host/stream_operations.hpp"
#include "common/launch_window.hpp"
#include "scheme.hpp"

namespace ring_reduction {

namespace {

/// Transfers that a launch window holds; each has at most three operations.
constexpr std::uint32_t transfers_ahead = 100;

class OnStreams final : public Scheme {
 public:
  explicit OnStreams(Vectors& vectors)
      : Scheme(vectors), ring_(vectors.ring(vectors.copy_chunk_bytes())), transfers_(transfers(ring_)),
        arrived_(world(), 1), copies_(world().make_stream()), ready_(world().stream().make_event()),
        copied_(copies_->make_event()), copies_ahead_(world(), *copies_, transfers_ahead),
        sums_ahead_(world(), world().stream(), transfers_ahead) {
    for (std::uint32_t chunk = 0; chunk < ring_.chunks; ++chunk) summed_.push_back(world().stream().make_event());
  }

  void run(int reductions) override {
    if (ring_.ranks == 1) return;
    for (int reduction = 0; reduction < reductions; ++reduction) enqueue();
    world().synchronize();
    world().synchronize(*copies_);
  }
  const Ring& ring() const override { return ring_; }

 private:
  /// Enqueues one reduction of the vector as earlier work of the default stream leaves it; later work of the stream
  /// finds the sum.
  void enqueue() {
    world().stream().record(*ready_);
    copies_->wait_event(*ready_);
    for (const Transfer& transfer : transfers_) {
      send(transfer);
      receive(transfer);
    }
    copies_->record(*copied_);
    world().stream().wait_event(*copied_);
    sequence_ += transfers_.size();
  }

  /// Number of a transfer's signal in this reduction; the next reduction's numbers follow.
  [[nodiscard]] std::uint64_t number(std::uint32_t step, std::uint32_t chunk) const {
    return sequence_ + std::uint64_t{step} * ring_.chunks + chunk + 1;
  }

  void send(const Transfer& transfer) {
    // The chunk sent in this step arrived in the previous step: as a term of a sum, or as a result.
    if (transfer.step > 0) {
      const bool is_sum = transfer.step < ring_.ranks;
      if (is_sum)
        copies_->wait_event(*summed_[transfer.chunk]);
      else
        wait(*copies_, number(transfer.step - 1, transfer.chunk));
    }
    if (transfer.sends.count > 0)
      world().copy(destination_of(vectors(), transfer, ring_.next()), vectors().data() + transfer.sends.first,
                   transfer.sends.count * sizeof(float), *copies_);
    beeline::signal_on_stream(
        world(), static_cast<int>(ring_.next()),
        {.signal = arrived_.data(), .value = number(transfer.step, transfer.chunk), .stream = copies_.get()});
    copies_ahead_.advance();
  }

  void wait(beeline::Stream& stream, std::uint64_t number) {
    beeline::wait_on_stream(world(),
                            {.signal = arrived_.data(), .value = number, .stream = &stream, .peer = ring_.previous()});
  }

  void receive(const Transfer& transfer) {
    wait(world().stream(), number(transfer.step, transfer.chunk));
    if (transfer.reduces) {
      enqueue_sum(vectors(), transfer);
      world().stream().record(*summed_[transfer.chunk]);
    }
    sums_ahead_.advance();
  }

  Ring ring_;
  std::vector<Transfer> transfers_;
  beeline::SymmetricArray<std::uint64_t> arrived_;  ///< number of the last transfer that has arrived
  std::unique_ptr<beeline::Stream> copies_;
  std::unique_ptr<beeline::Event> ready_, copied_;
  std::vector<std::unique_ptr<beeline::Event>> summed_;  ///< [chunks]
  apps::LaunchWindow copies_ahead_, sums_ahead_;
  std::uint64_t sequence_ = 0;
};

}  // namespace

SchemeInfo stream() {
  return SchemeInfo::of<OnStreams>(
      {"stream", "copies, sums and waits for signals follow each other on streams, enqueued beforehand",
       "stream/copy_engine/signal"});
}

}  // namespace ring_reduction
