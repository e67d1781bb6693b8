// SPDX-License-Identifier: Apache-2.0
#include "collectives/workplace.hpp"

#include <algorithm>

namespace beeline::bench {

std::size_t piece_elements(const CollectiveShape& operation, std::uint64_t bytes, ElementType type, int ranks) {
  constexpr std::uint64_t unit = 16;
  const std::uint64_t element = bytes_of(type), pieces = operation.any_pieces() ? static_cast<unsigned>(ranks) : 1;
  if (pieces == 1) return bytes / element;
  const std::uint64_t piece = bytes / pieces;
  return std::max<std::uint64_t>(1, (piece < unit ? piece : piece / unit * unit) / element);
}

Workplace::Workplace(Bench& bench, const CollectiveShape& operation, std::uint64_t bytes)
    : bench_(bench), operation_(operation), asked_bytes_(bytes),
      count_(piece_elements(operation, bytes, bench.options().type, bench.world().size())),
      source_(bench.world(), piece_bytes() * (operation.any_pieces() ? static_cast<unsigned>(world().size()) : 1)),
      destination_(bench.world(), source_.bytes()), collectives_(bench.world()), check_(bench) {}

VectorPair Workplace::vectors() const { return {source_.data(), destination_.data(), count_, bench_.options().type}; }

RankPart Workplace::part() const {
  return part_of(operation_, static_cast<std::uint32_t>(world().rank()), static_cast<std::uint32_t>(world().size()));
}

bool Workplace::verify(const VectorPair& vectors, std::uint64_t seed, const std::function<void()>& call) {
  const RankPart mine = part();
  check_.fill(vectors.source, mine.source_pieces * vectors.count, vectors.type, seed);
  check_.spoil(vectors.destination, mine.destination_pieces * piece_bytes());
  world().barrier();
  call();
  return check_.holds(vectors, mine.destination_pieces, seed, mine.expectation);
}

std::shared_ptr<Workplace> Workplaces::get(Bench& bench, const CollectiveShape& operation, std::uint64_t bytes) {
  std::shared_ptr<Workplace> place = current_.lock();
  if (place == nullptr || &place->operation() != &operation || place->asked_bytes() != bytes)
    current_ = place = std::make_shared<Workplace>(bench, operation, bytes);
  return place;
}

const char* name(CallSite control) {
  static constexpr const char* names[] = {"host", "stream", "graph", "device"};
  return names[static_cast<int>(control)];
}

void compare_as(Measurement& measurement, CallSite control, const World& world) {
  // Host ranks have only peers with blocking calls: everything is compared with them.
  measurement.compared_as = world.device().is_gpu() ? name(control) : name(CallSite::host);
}

Measurement collective_measurement(const std::string& method, CallSite control, const Workplace& place) {
  const World& world = place.world();
  Measurement measurement{.operation = name(place.operation().operation), .method = method, .bytes = place.bytes()};
  measurement.bus_factor = bus_factor(place.operation(), world.size());
  compare_as(measurement, control, world);
  measurement.settings = {{"control", name(control)}, {"type", name(place.vectors().type)}};
  return measurement;
}

Measurement peer_measurement(const std::string& method, CallSite control, const Workplace& place) {
  Measurement measurement = collective_measurement(method, control, place);
  measurement.peer_of = std::string(control == CallSite::host ? "stream" : name(control)) + "/automatic";
  return measurement;
}

}  // namespace beeline::bench
