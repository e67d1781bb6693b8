// SPDX-License-Identifier: Apache-2.0
/// @file
/// The same collectives by other libraries, on the same ranks, in the same run.

#include <fmt/format.h>

#include "collectives/calls.hpp"
#include "collectives/cases.hpp"
#include "peers/mpi/mpi.hpp"
#include "peers/nccl/nccl.hpp"
#include "peers/nvshmem/collectives.hpp"

namespace beeline::bench {

namespace {

/// A peer's call, ready to be enqueued on a stream.
struct PeerCall {
  StreamStart start;
  VectorPair vectors;
  std::string version = {};  ///< if the peer has a version
};

/// Prepares a peer's call; throws unavailable, with the reason, where the peer is absent.
using Provider = std::function<PeerCall(std::shared_ptr<Workplace>)>;

Case streamed(const CollectiveShape& operation, const std::string& peer, CallSite control,
              std::shared_ptr<Workplaces> places, Provider provide) {
  const std::string method = peer + "/" + name(control);
  const auto prepare = [=, &operation](Bench& bench, std::uint64_t bytes) {
    const auto place = places->get(bench, operation, bytes);
    const PeerCall call = provide(place);
    Measurement measurement = peer_measurement(method, control, *place);
    if (!call.version.empty()) measurement.settings.emplace_back("version", call.version);
    const auto start = [place, call](Stream& stream) { call.start(stream); };
    const Calls calls = calls_by(control, place->world(), start, place->bytes());
    time_by_host(measurement, bench, calls);
    verify_by(measurement, place, call.vectors, [calls] { calls.start(), calls.finish(); });
    return std::vector{measurement};
  };
  return {name(operation.operation), method, true, prepare};
}

Provider nccl_calls(std::shared_ptr<nccl::Communicators> communicators) {
  return [=](std::shared_ptr<Workplace> place) -> PeerCall {
    const auto communicator = communicators->get(place->bench());
    const Operation operation = place->operation().operation;
    const VectorPair vectors = place->vectors();
    return {[=](Stream& stream) { communicator->start(operation, vectors, stream); }, vectors, communicator->version()};
  };
}

/// Vectors in NVSHMEM's own heap.
struct NvshmemVectors {
  explicit NvshmemVectors(const std::shared_ptr<Workplace>& workplace)
      : place((nvshmem::start(workplace->bench()), workplace)), source(place->bytes()), destination(place->bytes()),
        timed(place->bench()), vectors{source.data(), destination.data(), place->vectors().count,
                                       place->vectors().type} {}
  std::shared_ptr<Workplace> place;
  nvshmem::Memory source, destination;
  nvshmem::TimedCollectives timed;
  VectorPair vectors;
};

/// Gives all methods of calling NVSHMEM the same vectors.
class NvshmemPlaces {
 public:
  /// Collective.
  std::shared_ptr<NvshmemVectors> get(const std::shared_ptr<Workplace>& place) {
    require(nvshmem::is_sum(place->operation().operation) || place->piece_bytes() % 4 == 0, Status::unavailable,
            "NVSHMEM is asked to move whole words of 4 bytes here");
    std::shared_ptr<NvshmemVectors> mine = current_.lock();
    if (mine == nullptr || mine->place != place) current_ = mine = std::make_shared<NvshmemVectors>(place);
    return mine;
  }

 private:
  std::weak_ptr<NvshmemVectors> current_;
};

Provider nvshmem_calls(std::shared_ptr<NvshmemPlaces> memory) {
  return [=](std::shared_ptr<Workplace> place) -> PeerCall {
    const auto mine = memory->get(place);
    const Operation operation = place->operation().operation;
    return {[=](Stream& stream) { mine->timed.start(operation, mine->vectors, stream.native()); }, mine->vectors};
  };
}

Case nvshmem_in_kernel(const CollectiveShape& operation, std::shared_ptr<Workplaces> places,
                       std::shared_ptr<NvshmemPlaces> memory) {
  const auto prepare = [=, &operation](Bench& bench, std::uint64_t bytes) {
    std::vector<Measurement> all;
    const auto place = places->get(bench, operation, bytes);
    const auto mine = memory->get(place);
    for (unsigned threads : {32u, 512u}) {
      const auto run = [=, &operation](Rounds rounds) {
        return mine->timed.in_block(operation.operation, mine->vectors, threads, rounds);
      };
      all.push_back(peer_measurement("nvshmem/device", CallSite::device, *place));
      all.back().settings.emplace_back("threads_per_block", std::uint64_t{threads});
      all.back().time = run;
      verify_by(all.back(), place, mine->vectors, [run] { static_cast<void>(run({})); });
    }
    return all;
  };
  return {name(operation.operation), "nvshmem/device", true, prepare, {.most_bytes = most_kernel_bytes}};
}

/// The vectors for MPI, in host memory: the ranks' own, or pinned memory to and from which a GPU's vectors are copied.
struct MpiVectors {
  MpiVectors(std::shared_ptr<Workplace> workplace, std::shared_ptr<mpi::Communicator> of, bool staged)
      : place(std::move(workplace)), communicator(std::move(of)) {
    if (!staged) return;
    source.emplace(place->world(), place->bytes(), Heap::pinned);
    destination.emplace(place->world(), place->bytes(), Heap::pinned);
  }

  void call() {
    const VectorPair vectors = place->vectors();
    const Operation operation = place->operation().operation;
    if (!source) return communicator->call(operation, vectors);
    const RankPart part = place->part();
    place->world().copy(source->data(), vectors.source, part.source_pieces * place->piece_bytes());
    communicator->call(operation, {source->data(), destination->data(), vectors.count, vectors.type});
    place->world().copy(vectors.destination, destination->data(), part.destination_pieces * place->piece_bytes());
  }

  std::shared_ptr<Workplace> place;
  std::shared_ptr<mpi::Communicator> communicator;
  std::optional<SymmetricArray<std::byte>> source, destination;
};

/// MPI on host ranks, or `staged`: a GPU's vector is copied to the host before the call, and the result back. An MPI
/// that accepts GPU memory gets host memory, too, because the baseline of the seeds (000, section 6.8.5) is this one.
Case mpi_calls(const CollectiveShape& operation, bool staged, std::shared_ptr<Workplaces> places) {
  const std::string method = staged ? "mpi/staged" : "mpi/host";
  const auto prepare = [=, &operation](Bench& bench, std::uint64_t bytes) {
    const World& world = bench.world();
    require(world.device().is_gpu() == staged, Status::unavailable,
            staged ? "host ranks' vectors need no staging: see mpi/host" : "vectors lie in GPU memory: see mpi/staged");
    // Two vectors, and the same amount for the library's own use of that heap.
    require(!staged || bytes <= world.config().pinned_heap_bytes / 4, Status::no_resource,
            fmt::format("vectors are staged in host memory, up to a quarter of BEELINE_PINNED_HEAP_BYTES ({})",
                        world.config().pinned_heap_bytes));
    const auto place = places->get(bench, operation, bytes);
    const auto mine = std::make_shared<MpiVectors>(place, mpi::communicator(bench), staged);
    const auto call = [mine] { mine->call(); };
    Measurement measurement = peer_measurement(method, CallSite::host, *place);
    if (staged) measurement.compared_as = name(CallSite::stream);
    measurement.settings.emplace_back("version", mine->communicator->version());
    time_by_host(measurement, bench, {call, [] {}});
    verify_by(measurement, place, place->vectors(), call);
    return std::vector{measurement};
  };
  return {name(operation.operation), method, true, prepare};
}

}  // namespace

struct Peers {
  std::shared_ptr<nccl::Communicators> communicators = std::make_shared<nccl::Communicators>();
  std::shared_ptr<NvshmemPlaces> memory = std::make_shared<NvshmemPlaces>();
};

std::shared_ptr<Peers> make_peers() { return std::make_shared<Peers>(); }

std::vector<Case> peer_cases(const CollectiveShape& operation, std::shared_ptr<Workplaces> places,
                             const std::shared_ptr<Peers>& peers) {
  std::vector<Case> all;
  for (CallSite control : {CallSite::stream, CallSite::graph})
    all.push_back(streamed(operation, "nccl", control, places, nccl_calls(peers->communicators)));
  if (nvshmem::is_on_streams(operation.operation))
    for (CallSite control : {CallSite::stream, CallSite::graph})
      all.push_back(streamed(operation, "nvshmem", control, places, nvshmem_calls(peers->memory)));
  if (nvshmem::is_in_kernels(operation.operation)) all.push_back(nvshmem_in_kernel(operation, places, peers->memory));
  for (bool staged : {false, true}) all.push_back(mpi_calls(operation, staged, places));
  return all;
}

}  // namespace beeline::bench
