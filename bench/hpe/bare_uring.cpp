// SPDX-License-Identifier: Apache-2.0
#include "hpe/bare_uring.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "beeline/core/error.hpp"
#if BENCH_URING
#include <liburing.h>
#endif

namespace beeline::bench::hpe {

#if BENCH_URING

struct BareUring::Ring {
  io_uring ring{};
  std::vector<std::size_t> lengths;  ///< of the calls in flight, by buffer
};

namespace {

/// A block of small pages takes a descriptor for each page, of which the queue of a virtual disk holds 256: one block
/// is in flight, with large pages several.
std::byte* make_buffers(std::size_t bytes, bool large_pages) {
  constexpr std::size_t page = std::size_t{2} << 20;
  const std::size_t whole = (bytes + page - 1) / page * page;
  void* const start = std::aligned_alloc(page, whole);
  require(start != nullptr, Status::no_resource, "no memory for the bare loop's buffers");
  ::madvise(start, whole, large_pages ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
  std::memset(start, 1, whole);
  return static_cast<std::byte*>(start);
}

}  // namespace

std::string BareUring::lacking() {
  io_uring ring{};
  if (io_uring_queue_init(1, &ring, 0) < 0) return "the system refuses io_uring";
  io_uring_queue_exit(&ring);
  return {};
}

BareUring::BareUring(std::size_t block_bytes, unsigned calls, bool large_pages)
    : block_bytes_(block_bytes), calls_(calls), ring_(std::make_unique<Ring>()),
      buffers_(make_buffers(block_bytes * calls, large_pages)) {
  ring_->lengths.resize(calls);
  require(io_uring_queue_init(calls, &ring_->ring, 0) >= 0, Status::unavailable, "the system refuses io_uring");
}

BareUring::~BareUring() {
  io_uring_queue_exit(&ring_->ring);
  std::free(buffers_);
}

void BareUring::move(int descriptor, bool reads, std::size_t bytes, std::byte* memory) {
  std::size_t next = 0, done = 0;
  std::vector<unsigned> idle;
  for (unsigned i = calls_; i-- > 0;) idle.push_back(i);
  while (done < bytes) {
    for (; next < bytes && !idle.empty(); idle.pop_back()) {
      const unsigned index = idle.back();
      const std::size_t length = ring_->lengths[index] = std::min(block_bytes_, bytes - next);
      io_uring_sqe* const entry = io_uring_get_sqe(&ring_->ring);
      std::byte* const start = memory == nullptr ? buffers_ + index * block_bytes_ : memory + next;
      if (reads)
        io_uring_prep_read(entry, descriptor, start, static_cast<unsigned>(length), next);
      else
        io_uring_prep_write(entry, descriptor, start, static_cast<unsigned>(length), next);
      io_uring_sqe_set_data64(entry, index);
      next += length;
    }
    io_uring_submit_and_wait(&ring_->ring, 1);
    for (io_uring_cqe* found = nullptr; io_uring_peek_cqe(&ring_->ring, &found) == 0;) {
      const auto index = static_cast<unsigned>(io_uring_cqe_get_data64(found));
      require(found->res == static_cast<int>(ring_->lengths[index]), Status::internal,
              "a block was not moved as a whole");
      done += ring_->lengths[index];
      idle.push_back(index);
      io_uring_cqe_seen(&ring_->ring, found);
    }
  }
}

#else

struct BareUring::Ring {};
std::string BareUring::lacking() { return "this build has no static liburing (Debian's liburing-dev)"; }
BareUring::BareUring(std::size_t block_bytes, unsigned calls, bool)
    : block_bytes_(block_bytes), calls_(calls), buffers_(nullptr) {}
BareUring::~BareUring() = default;
void BareUring::move(int, bool, std::size_t, std::byte*) { throw Error(Status::unavailable, lacking()); }

#endif

}  // namespace beeline::bench::hpe
