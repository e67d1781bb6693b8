// SPDX-License-Identifier: Apache-2.0
#include "collectives/workplace.hpp"

#include "beeline/device/impl/machine.hpp"

namespace beeline::bench {

Workplace::Workplace(Session& session, std::uint64_t bytes)
    : session_(session), source_(session.world(), bytes), destination_(session.world(), bytes),
      collectives_(session.world()), check_(session) {}

VectorPair Workplace::vectors() const {
  const ElementType type = session_.options().type;
  return {source_.data(), destination_.data(), source_.bytes() / bytes_of(type), type};
}

bool Workplace::verify(const CollectiveOperation& operation, const VectorPair& vectors, std::uint64_t seed,
                       const std::function<void()>& call) {
  check_.fill(vectors.source, vectors.count, vectors.type, seed);
  check_.spoil(vectors.destination, vectors.count * bytes_of(vectors.type));
  world().barrier();
  call();
  return check_.holds(vectors.destination, vectors.count, vectors.type, seed, operation.expectation(world().size()));
}

std::shared_ptr<Workplace> Workplaces::get(Session& session, std::uint64_t bytes) {
  std::shared_ptr<Workplace> place = current_.lock();
  if (place == nullptr || place->bytes() != bytes) current_ = place = std::make_shared<Workplace>(session, bytes);
  return place;
}

std::vector<double> time_calls(const Session& session, Rounds rounds, const std::function<void()>& call,
                               const std::function<void()>& finish) {
  session.world().barrier();
  for (std::uint32_t i = 0; i < rounds.warm_up; ++i) call();
  finish();
  std::vector<double> times;
  for (std::uint32_t batch = 0; batch < rounds.batches; ++batch) {
    const std::uint64_t start = machine::clock_ns();
    for (std::uint32_t i = 0; i < rounds.iterations; ++i) call();
    finish();
    times.push_back(static_cast<double>(machine::clock_ns() - start));
  }
  return session.slowest(times);
}

const char* name(Control control) {
  static constexpr const char* names[] = {"host", "stream", "graph", "device"};
  return names[static_cast<int>(control)];
}

Measurement collective_measurement(const CollectiveOperation& operation, const std::string& method, Control control,
                                   const Workplace& place) {
  const World& world = place.world();
  Measurement measurement{.operation = operation.name, .method = method, .bytes = place.bytes()};
  measurement.bus_factor = operation.bus_factor(world.size());
  // Host ranks have one kind of peer, whose call blocks: everything is compared with it.
  measurement.compared_as = world.device().is_gpu() ? name(control) : name(Control::host);
  measurement.settings = {{"control", name(control)}, {"type", name(place.vectors().type)}};
  return measurement;
}

Measurement peer_measurement(const CollectiveOperation& operation, const std::string& method, Control control,
                             const Workplace& place) {
  Measurement measurement = collective_measurement(operation, method, control, place);
  measurement.peer_of = std::string(control == Control::host ? "stream" : name(control)) + "/automatic";
  return measurement;
}

}  // namespace beeline::bench
