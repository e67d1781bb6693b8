// SPDX-License-Identifier: Apache-2.0
/// @file
/// Beeline's own collectives: on a stream, in a graph, and in a loop inside one kernel.

#include <algorithm>

#include "collectives/calls.hpp"
#include "collectives/cases.hpp"

namespace beeline::bench {

namespace {

/// Collective. Throws unavailable if these ranks do not have the algorithm.
void check_available(World& world, const MeasuredAlgorithm& measured) {
  require(!measured.symmetric || world.device().is_gpu(), Status::unavailable,
          "only GPUs' copy engines use that vectors are asserted to be symmetric");
  const std::string reason = reason_against(world, measured.algorithm);
  require(reason.empty(), Status::unavailable, reason);
}

/// The method's name in records: stream/two_shot, ...; stream/automatic_symmetric if the caller asserts that vectors
/// are symmetric.
std::string method_of(CallSite control, Algorithm algorithm, bool symmetric = false) {
  return std::string(name(control)) + "/" + name(algorithm) + (symmetric ? "_symmetric" : "");
}

/// Numbers of blocks to measure: those in the options; otherwise 0 (Beeline's choice) and all that engines have.
std::vector<unsigned> block_counts(const Bench& bench, Algorithm algorithm) {
  const std::vector<unsigned>& asked = bench.options().block_counts;
  return asked.empty() || algorithm == Algorithm::copy_engine ? std::vector<unsigned>{0} : asked;
}

/// Records what a call chooses, if the library reveals it; for pieces of different lengths it does not.
void add_choice(Measurement& measurement, const Workplace& place, const Collectives& collectives,
                const CollectiveCall& call) {
  const VectorPair& vectors = place.vectors();
  const CollectiveCall choice =
      place.operation().varies ? call
                               : collectives.choice(place.operation().operation, vectors.count, vectors.type, call);
  measurement.settings.emplace_back("algorithm", name(choice.algorithm));
  if (choice.blocks != 0) measurement.settings.emplace_back("blocks", std::uint64_t{choice.blocks});
}

Measurement streamed(std::shared_ptr<Workplace> place, CallSite control, const CollectiveCall& call) {
  const auto begin = [place, call](Stream& stream) {
    CollectiveCall mine = call;
    mine.stream = &stream;
    start(place->operation(), place->collectives(), place->vectors(), mine);
  };
  const std::string method = method_of(control, call.algorithm, call.symmetric);
  Measurement measurement = collective_measurement(method, control, *place);
  add_choice(measurement, *place, place->collectives(), call);
  const Calls calls = calls_by(control, place->world(), begin, place->bytes());
  time_by_host(measurement, place->bench(), calls);
  verify_by(measurement, place, place->vectors(), [calls] { calls.start(), calls.finish(); });
  return measurement;
}

/// Numbers of threads of the one block: a warp, and one thread for each word of 8 bytes.
std::vector<unsigned> kernel_threads(const World& world, std::uint64_t bytes) {
  if (!world.device().is_gpu()) return {static_cast<unsigned>(world.config().host_threads)};
  std::vector<unsigned> threads = {32};
  for (unsigned more : {128u, 512u})
    if (bytes > std::uint64_t{threads.back()} * 8) threads.push_back(more);
  return threads;
}

Measurement in_kernel(std::shared_ptr<Workplace> place, std::shared_ptr<TimedKernel> timed, Algorithm algorithm,
                      unsigned threads) {
  const auto run = [=](Rounds rounds) {
    return time_in_kernel(place->operation().operation, *timed, {threads, rounds, algorithm},
                          place->collectives().channel(), place->vectors());
  };
  Measurement measurement = collective_measurement(method_of(CallSite::device, algorithm), CallSite::device, *place);
  measurement.settings.emplace_back("algorithm", name(algorithm));
  measurement.settings.emplace_back("blocks", std::uint64_t{1});
  measurement.settings.emplace_back("threads_per_block", std::uint64_t{threads});
  measurement.time = run;
  verify_by(measurement, place, place->vectors(), [run] { static_cast<void>(run({})); });
  return measurement;
}

}  // namespace

Case collective_by_host(const CollectiveShape& operation, const MeasuredAlgorithm& measured, CallSite control,
                        std::shared_ptr<Workplaces> places) {
  const auto prepare = [=, &operation](Bench& bench, std::uint64_t bytes) {
    std::vector<Measurement> all;
    check_available(bench.world(), measured);
    for (unsigned blocks : block_counts(bench, measured.algorithm))
      all.push_back(streamed(places->get(bench, operation, bytes), control,
                             {.algorithm = measured.algorithm, .blocks = blocks, .symmetric = measured.symmetric}));
    return all;
  };
  return {name(operation.operation),
          method_of(control, measured.algorithm, measured.symmetric),
          true,
          prepare,
          {measured.sizes.least, measured.sizes.most}};
}

Case collective_in_kernel(const CollectiveShape& operation, const MeasuredAlgorithm& measured,
                          std::shared_ptr<Workplaces> places) {
  const auto prepare = [=, &operation](Bench& bench, std::uint64_t bytes) {
    std::vector<Measurement> all;
    check_available(bench.world(), measured);
    if (measured.algorithm != Algorithm::automatic) bench.require_loads_and_stores();
    const auto place = places->get(bench, operation, bytes);
    const auto timed = std::make_shared<TimedKernel>(bench);
    for (unsigned threads : kernel_threads(bench.world(), place->bytes()))
      all.push_back(in_kernel(place, timed, measured.algorithm, threads));
    return all;
  };
  return {name(operation.operation),
          method_of(CallSite::device, measured.algorithm),
          true,
          prepare,
          {measured.sizes.least, std::min(measured.sizes.most, most_kernel_bytes)}};
}

}  // namespace beeline::bench
