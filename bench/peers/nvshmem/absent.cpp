// SPDX-License-Identifier: Apache-2.0
// Replaces nvshmem.cu and collectives.cu in builds without NVSHMEM.
#include "beeline/core/error.hpp"
#include "peers/nvshmem/collectives.hpp"
#include "peers/nvshmem/nvshmem.hpp"

namespace beeline::bench::nvshmem {

namespace {

[[noreturn]] void refuse() { throw Error(Status::unavailable, "this program was built without NVSHMEM"); }

}  // namespace

void start(Bench&) { refuse(); }
void stop() {}
Memory::Memory(std::size_t) : data_(nullptr) { refuse(); }
Memory::~Memory() = default;
void Memory::write(const void*, std::size_t) {}
void Memory::read(void*, std::size_t) const {}
TimedBlock::TimedBlock(Bench& bench) : bench_(bench), stamps_(0) {}
std::vector<double> TimedBlock::run(BlockOperation, const Setup&, Rounds) { return {}; }
TimedBlocks::TimedBlocks(Bench& bench, unsigned) : bench_(bench), times_(0), total_(0) {}
double TimedBlocks::put(unsigned, std::byte*, const std::byte*, std::size_t, std::uint32_t) { return 0; }
double TimedBlocks::update(unsigned, std::uint64_t*, std::uint64_t, std::uint64_t, std::uint64_t) { return 0; }
std::uint64_t TimedBlocks::sum(const std::uint64_t*, std::uint64_t) { return 0; }
std::uint64_t TimedBlocks::sum_of_updates(unsigned, std::uint64_t, std::uint64_t, std::uint64_t) { return 0; }
TimedCollectives::TimedCollectives(Bench& bench) : bench_(bench), stamps_(0) {}
void TimedCollectives::start(Operation, const VectorPair&, void*) {}
std::vector<double> TimedCollectives::in_block(Operation, const VectorPair&, unsigned, Rounds) { return {}; }
void start_barrier(void*) {}

}  // namespace beeline::bench::nvshmem
