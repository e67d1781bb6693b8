// SPDX-License-Identifier: Apache-2.0
/// @file
/// The barrier in each of its forms, compared with the peers' barriers. The barrier of device/barrier.hpp, which needs
/// no channel, is measured by `beeline-bench latency`.

#include "collectives/barrier_kernels.hpp"
#include "collectives/calls.hpp"
#include "collectives/cases.hpp"
#include "peers/mpi/mpi.hpp"
#include "peers/nvshmem/collectives.hpp"

namespace beeline::bench {

namespace {

struct BarrierPlace {
  /// Collective.
  explicit BarrierPlace(Bench& bench) : collectives(bench.world()), kernels(bench) {}
  Collectives collectives;
  BarrierKernels kernels;
};

/// Gives all forms the same channel while they are measured.
class BarrierPlaces {
 public:
  /// Collective, at the beginning of each form.
  std::shared_ptr<BarrierPlace> get(Bench& bench) {
    std::shared_ptr<BarrierPlace> place = current_.lock();
    if (place == nullptr) current_ = place = std::make_shared<BarrierPlace>(bench);
    return place;
  }

 private:
  std::weak_ptr<BarrierPlace> current_;
};

Measurement barrier_measurement(const std::string& method, CallSite control, const World& world) {
  Measurement measurement{.operation = name(Operation::barrier), .method = method};
  compare_as(measurement, control, world);
  measurement.settings = {{"control", name(control)}};
  return measurement;
}

Measurement peer_barrier(const std::string& method, CallSite control, const World& world) {
  Measurement measurement = barrier_measurement(method, control, world);
  measurement.peer_of = std::string(control == CallSite::host ? "stream" : name(control)) + "/alltoall";
  return measurement;
}

std::string barrier_method(CallSite control, Algorithm algorithm) {
  return std::string(name(control)) + "/" + name(algorithm);
}

Case in_kernel(Algorithm algorithm, std::shared_ptr<BarrierPlaces> places) {
  const std::string method = barrier_method(CallSite::device, algorithm);
  const auto prepare = [=](Bench& bench, std::uint64_t) {
    bench.require_loads_and_stores();
    const auto place = places->get(bench);
    std::vector<Measurement> all;
    for (const GridShape& shape : place->kernels.shapes(algorithm)) {
      all.push_back(barrier_measurement(method, CallSite::device, bench.world()));
      all.back().settings.emplace_back("blocks", std::uint64_t{shape.blocks});
      all.back().settings.emplace_back("threads_per_block", std::uint64_t{shape.threads});
      all.back().time = [=](Rounds rounds) {
        return place->kernels.time({algorithm, shape}, place->collectives.channel(), rounds);
      };
      all.back().verify = [=](std::uint64_t seed) {
        return place->kernels.holds({algorithm, shape}, place->collectives.channel(), seed);
      };
    }
    return all;
  };
  return {name(Operation::barrier), method, false, prepare};
}

Case as_kernel(Algorithm algorithm, CallSite control, std::shared_ptr<BarrierPlaces> places) {
  const std::string method = barrier_method(control, algorithm);
  const auto prepare = [=](Bench& bench, std::uint64_t) {
    const std::string reason = reason_against(bench.world(), algorithm);
    require(reason.empty(), Status::unavailable, reason);
    const auto place = places->get(bench);
    const auto start = [=](Stream& stream) {
      place->collectives.barrier_on_stream({.stream = &stream, .algorithm = algorithm});
    };
    const Calls calls = calls_by(control, bench.world(), start, 0);
    Measurement measurement = barrier_measurement(method, control, bench.world());
    time_by_host(measurement, bench, calls);
    measurement.verify = [=](std::uint64_t seed) { return place->kernels.holds(calls.start, seed); };
    return std::vector{measurement};
  };
  return {name(Operation::barrier), method, false, prepare};
}

// Whether a peer's barrier works is not checked; here it is only timed.

Case nvshmem_barrier(CallSite control) {
  const std::string method = std::string("nvshmem/") + name(control);
  const auto prepare = [=](Bench& bench, std::uint64_t) {
    nvshmem::start(bench);
    const auto start = [](Stream& stream) { nvshmem::start_barrier(stream.native()); };
    Measurement measurement = peer_barrier(method, control, bench.world());
    time_by_host(measurement, bench, calls_by(control, bench.world(), start, 0));
    return std::vector{measurement};
  };
  return {name(Operation::barrier), method, false, prepare};
}

/// What a program does without barriers on streams: it waits for the stream, and then the CPU threads enter a barrier.
Case mpi_barrier_case() {
  const auto prepare = [](Bench& bench, std::uint64_t) {
    const auto communicator = mpi::communicator(bench);
    World& world = bench.world();
    Measurement measurement = peer_barrier("mpi/host", CallSite::host, world);
    if (world.device().is_gpu()) measurement.compared_as = name(CallSite::stream);
    measurement.settings.emplace_back("version", communicator->version());
    const auto meet = [&world, communicator] {
      world.synchronize();
      communicator->barrier();
    };
    time_by_host(measurement, bench, {meet, [] {}});
    return std::vector{measurement};
  };
  return {name(Operation::barrier), "mpi/host", false, prepare};
}

}  // namespace

std::vector<Case> barrier_cases() {
  const auto places = std::make_shared<BarrierPlaces>();
  std::vector<Case> all;
  std::vector<Algorithm> algorithms;
  for (const MethodRow& row : method_rows)
    if (row.operation == Operation::barrier) algorithms.push_back(row.algorithm);
  for (Algorithm algorithm : algorithms)
    if (has_algorithm(Operation::barrier, algorithm, Control::device)) all.push_back(in_kernel(algorithm, places));
  for (CallSite control : {CallSite::stream, CallSite::graph}) {
    for (Algorithm algorithm : algorithms) all.push_back(as_kernel(algorithm, control, places));
    all.push_back(nvshmem_barrier(control));
  }
  all.push_back(mpi_barrier_case());
  return all;
}

}  // namespace beeline::bench
