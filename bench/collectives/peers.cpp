// SPDX-License-Identifier: Apache-2.0
/// @file
/// The same collectives of other libraries, on the same ranks, in the same run.

#include "collectives/calls.hpp"
#include "collectives/cases.hpp"
#include "peers/captured_graph.hpp"
#include "peers/mpi/mpi.hpp"
#include "peers/nccl/nccl.hpp"
#include "peers/nvshmem/reduce.hpp"

namespace beeline::bench {

namespace {

/// Prepares a peer's call; throws unavailable, with the reason, where the peer is absent.
using Provider = std::function<StreamCall(Session&, std::shared_ptr<Workplace>)>;

Case streamed(const CollectiveOperation& operation, const std::string& peer, Control control,
              std::shared_ptr<Workplaces> places, Provider provide) {
  const std::string method = peer + "/" + name(control);
  const auto prepare = [=, &operation](Session& session, std::uint64_t bytes) {
    const auto place = places->get(session, bytes);
    const StreamCall call = provide(session, place);
    Measurement measurement = peer_measurement(operation, method, control, *place);
    if (!call.version.empty()) measurement.settings.emplace_back("version", call.version);
    return std::vector{control == Control::graph ? measured_in_graph(std::move(measurement), operation, place, call)
                                                 : measured_on_stream(std::move(measurement), operation, place, call)};
  };
  return {operation.name, method, true, prepare};
}

Provider nccl_calls(CollectiveKind kind, std::shared_ptr<nccl::Communicators> communicators) {
  return [=](Session& session, std::shared_ptr<Workplace> place) -> StreamCall {
    const auto communicator = communicators->get(session);
    const VectorPair vectors = place->vectors();
    return {[=](Stream& stream) { communicator->start(kind, vectors, stream); }, vectors, communicator->version()};
  };
}

/// Vectors in NVSHMEM's own heap.
struct NvshmemVectors {
  NvshmemVectors(Session& session, const VectorPair& like)
      : source((nvshmem::start(session), like.count * bytes_of(like.type))),
        destination(like.count * bytes_of(like.type)),
        timed(session), vectors{source.data(), destination.data(), like.count, like.type} {}
  nvshmem::Memory source, destination;
  nvshmem::TimedReduction timed;
  VectorPair vectors;
};

Provider nvshmem_calls() {
  return [](Session& session, std::shared_ptr<Workplace> place) -> StreamCall {
    const auto mine = std::make_shared<NvshmemVectors>(session, place->vectors());
    return {[=](Stream& stream) { mine->timed.start(mine->vectors, stream.native()); }, mine->vectors};
  };
}

Case nvshmem_in_kernel(const CollectiveOperation& operation, std::shared_ptr<Workplaces> places) {
  const auto prepare = [=, &operation](Session& session, std::uint64_t bytes) {
    std::vector<Measurement> all;
    if (bytes > most_kernel_bytes) return all;
    const auto place = places->get(session, bytes);
    const auto mine = std::make_shared<NvshmemVectors>(session, place->vectors());
    for (unsigned threads : {32u, 512u}) {
      const auto run = [=](Rounds rounds) { return mine->timed.in_block(mine->vectors, threads, rounds); };
      all.push_back(peer_measurement(operation, "nvshmem/device", Control::device, *place));
      all.back().settings.emplace_back("threads_per_block", std::uint64_t{threads});
      all.back().time = run;
      all.back().verify = [=, &operation](std::uint64_t seed) {
        return place->verify(operation, mine->vectors, seed, [&] { static_cast<void>(run({})); });
      };
    }
    return all;
  };
  return {operation.name, "nvshmem/device", true, prepare};
}

/// MPI on host memory: the ranks' own, or where a GPU's vector is copied to and the result from.
struct MpiVectors {
  MpiVectors(std::shared_ptr<Workplace> workplace, std::shared_ptr<mpi::Communicator> of)
      : place(std::move(workplace)), communicator(std::move(of)) {
    if (!place->world().device().is_gpu()) return;
    source.emplace(place->world(), place->bytes(), Heap::pinned);
    destination.emplace(place->world(), place->bytes(), Heap::pinned);
  }

  void call(CollectiveKind kind) {
    const VectorPair vectors = place->vectors();
    if (!source) return communicator->call(kind, vectors);
    place->world().copy(source->data(), vectors.source, source->bytes());
    communicator->call(kind, {source->data(), destination->data(), vectors.count, vectors.type});
    place->world().copy(vectors.destination, destination->data(), destination->bytes());
  }

  std::shared_ptr<Workplace> place;
  std::shared_ptr<mpi::Communicator> communicator;
  std::optional<SymmetricArray<std::byte>> source, destination;
};

Case mpi_calls(const CollectiveOperation& operation, std::shared_ptr<Workplaces> places) {
  constexpr std::uint64_t most_staged_bytes = 16 << 20;  // two vectors in the heap of host memory
  const auto prepare = [=, &operation](Session& session, std::uint64_t bytes) {
    std::vector<Measurement> all;
    const bool staged = session.world().device().is_gpu();
    if (staged && bytes > most_staged_bytes) return all;
    const auto place = places->get(session, bytes);
    const auto mine = std::make_shared<MpiVectors>(place, mpi::communicator(session));
    const auto call = [=, &operation] { mine->call(operation.kind); };
    all.push_back(peer_measurement(operation, "mpi/host", Control::host, *place));
    if (staged) all.back().compared_as = name(Control::stream);
    all.back().settings.emplace_back("memory", staged ? "staged" : "host");
    all.back().settings.emplace_back("version", mine->communicator->version());
    all.back().time = [=](Rounds rounds) { return time_calls(place->session(), rounds, call, [] {}); };
    all.back().verify = [=, &operation](std::uint64_t seed) {
      return place->verify(operation, place->vectors(), seed, call);
    };
    return all;
  };
  return {operation.name, "mpi/host", true, prepare};
}

/// What a graph's call takes that does nothing.
Case empty_kernel_in_graph(const CollectiveOperation& operation, std::shared_ptr<Workplaces> places) {
  const auto prepare = [=, &operation](Session& session, std::uint64_t bytes) {
    const auto place = places->get(session, bytes);
    Measurement measurement = peer_measurement(operation, "bare/empty_kernel", Control::graph, *place);
    measurement.compared_as.clear();
    measurement.bus_factor.reset();
    measurement = measured_in_graph(std::move(measurement), operation, place, {launch_empty_kernel, place->vectors()});
    measurement.verify = nullptr;
    return std::vector{measurement};
  };
  return {operation.name, "bare/empty_kernel", true, prepare};
}

}  // namespace

std::vector<Case> peer_cases(const CollectiveOperation& operation, std::shared_ptr<Workplaces> places) {
  std::vector<Case> all;
  const auto communicators = std::make_shared<nccl::Communicators>();
  for (Control control : {Control::stream, Control::graph})
    all.push_back(streamed(operation, "nccl", control, places, nccl_calls(operation.kind, communicators)));
  if (operation.kind == CollectiveKind::allreduce) {
    for (Control control : {Control::stream, Control::graph})
      all.push_back(streamed(operation, "nvshmem", control, places, nvshmem_calls()));
    all.push_back(nvshmem_in_kernel(operation, places));
  }
  all.push_back(mpi_calls(operation, places));
  all.push_back(empty_kernel_in_graph(operation, places));
  return all;
}

}  // namespace beeline::bench
