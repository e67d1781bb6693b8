// SPDX-License-Identifier: Apache-2.0
// The rendezvous server's part in collective calls: exchanges of bytes, and the agreement on survivors.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "beeline/core/error.hpp"
#include "runtime/rank_list.hpp"
#include "runtime/rendezvous_server.hpp"

namespace beeline {

using detail::Connection;
using detail::Contribution;
using detail::Deadline;
using detail::encode;
using detail::Frame;
using detail::FrameType;
using detail::ServedWorld;

void RendezvousServer::Implementation::contribute(Connection& connection, Frame frame) {
  ServedWorld& world = *connection.world;
  if (world.broken || !world.seats[static_cast<std::size_t>(connection.rank)].member) return;  // a failure was sent
  connection.waiting.emplace(
      Contribution{false, frame.header.sequence, Deadline(frame.header.deadline_ns), std::move(frame.payload)});
  fail_if_impossible(world);
  if (world.broken) return;
  if (const int other = world.first_that_asks(); other >= 0)
    return fail_waiting(connection, Status::aborted, detail::asks_message(other));
  const bool complete = std::all_of(world.seats.begin(), world.seats.end(),
                                    [](const ServedWorld::Seat& seat) { return !seat.member || seat.contributes(); });
  if (complete) complete_round(world);
}

void RendezvousServer::Implementation::complete_round(ServedWorld& world) {
  std::vector<std::uint64_t> lengths;
  std::size_t total = world.seats.size() * sizeof(std::uint64_t);
  for (const ServedWorld::Seat& seat : world.seats) {
    lengths.push_back(seat.member ? seat.connection->waiting->bytes.size() : 0);
    total += lengths.back();
  }
  std::vector<std::byte> all(total);
  std::memcpy(all.data(), lengths.data(), lengths.size() * sizeof(std::uint64_t));
  std::byte* end = all.data() + lengths.size() * sizeof(std::uint64_t);
  for (const ServedWorld::Seat& seat : world.seats) {
    if (!seat.member) continue;
    const auto& bytes = seat.connection->waiting->bytes;
    end = std::copy(bytes.begin(), bytes.end(), end);
  }
  const auto payload = std::make_shared<const std::vector<std::byte>>(std::move(all));
  for (const ServedWorld::Seat& seat : world.seats) {
    if (!seat.member) continue;
    Connection& connection = *seat.connection;
    detail::FrameHeader header{.type = FrameType::gathered, .sequence = connection.waiting->sequence};
    header.bytes = payload->size();
    connection.waiting.reset();
    connection.send(std::make_shared<const std::vector<std::byte>>(reinterpret_cast<const std::byte*>(&header),
                                                                   reinterpret_cast<const std::byte*>(&header + 1)));
    connection.send(payload);
  }
}

void RendezvousServer::Implementation::fail_waiting(Connection& connection, Status status, const std::string& message) {
  const detail::FrameHeader header{
      .type = FrameType::failed, .number = static_cast<std::int32_t>(status), .sequence = connection.waiting->sequence};
  connection.waiting.reset();
  connection.send(encode(header, message));
}

void RendezvousServer::Implementation::call_survivors(Connection& connection, const Frame& frame) {
  ServedWorld& world = *connection.world;
  const bool over = std::find(world.culprits.begin(), world.culprits.end(), -1) != world.culprits.end();
  // A rank that has failed, or whose world has ended, was sent the failure.
  if (over || world.seats[static_cast<std::size_t>(connection.rank)].state == RankState::failed) return;
  connection.waiting.emplace(Contribution{true, frame.header.sequence, Deadline(frame.header.deadline_ns), {}});
  // An allgather in which other ranks wait cannot complete: these ranks get an error, and ask for the survivors, too.
  for (const ServedWorld::Seat& other : world.seats)
    if (other.contributes()) fail_waiting(*other.connection, Status::aborted, detail::asks_message(connection.rank));
  settle_survivors(world);
}

/// Completes the agreement once every healthy rank waits in it.
void RendezvousServer::Implementation::settle_survivors(ServedWorld& world) {
  std::vector<std::int32_t> survivors;
  for (std::size_t rank = 0; rank < world.seats.size(); ++rank) {
    if (world.seats[rank].state != RankState::healthy) continue;
    if (!world.seats[rank].asks()) return;
    survivors.push_back(static_cast<std::int32_t>(rank));
  }
  if (survivors.empty()) return;
  world.publish_left();
  world.broken = false;
  for (ServedWorld::Seat& seat : world.seats) seat.member = seat.state == RankState::healthy;
  for (const std::int32_t rank : survivors) {
    Connection& connection = *world.seats[static_cast<std::size_t>(rank)].connection;
    const detail::FrameHeader header{.type = FrameType::agreed, .sequence = connection.waiting->sequence};
    connection.waiting.reset();
    connection.send(encode(header, survivors.data(), survivors.size() * sizeof(std::int32_t)));
  }
  const bool any_broken =
      std::any_of(worlds_.begin(), worlds_.end(), [](const auto& entry) { return entry.second.broken; });
  const std::scoped_lock lock(mutex_);
  reported_ = any_broken;
}

void RendezvousServer::Implementation::fail_if_impossible(ServedWorld& world) {
  if (world.broken) return;
  std::vector<int> left, missing;
  bool awaited = false;
  for (std::size_t rank = 0; rank < world.seats.size(); ++rank) {
    const ServedWorld::Seat& seat = world.seats[rank];
    if (seat.member && seat.taken && seat.connection == nullptr) left.push_back(static_cast<int>(rank));
    if (seat.member && !seat.taken && ranks_[rank].ended) missing.push_back(static_cast<int>(rank));
    awaited = awaited || seat.contributes();
  }
  if (awaited && !missing.empty()) {
    {
      const std::scoped_lock lock(mutex_);
      missed_.insert(missed_.end(), missing.begin(), missing.end());
    }
    return fail_world(world, {missing.front(), Status::peer_died, detail::missed_message(missing)});
  }
  if (awaited && !left.empty()) fail_world(world, {left.front(), Status::peer_died, detail::left_message(left)});
}

void RendezvousServer::Implementation::expire_allgather(ServedWorld& world) {
  const Contribution* late = nullptr;
  std::vector<int> not_called, not_joined;
  for (std::size_t rank = 0; rank < world.seats.size(); ++rank) {
    const ServedWorld::Seat& seat = world.seats[rank];
    if (!seat.member) continue;
    if (!seat.taken) not_joined.push_back(static_cast<int>(rank));
    if (seat.connection == nullptr) continue;
    if (!seat.contributes()) not_called.push_back(static_cast<int>(rank));
    if (seat.contributes() && seat.connection->waiting->deadline.passed()) late = &*seat.connection->waiting;
  }
  if (late == nullptr) return;
  const std::string message = detail::missing_message(late->deadline.total_seconds(), not_called, not_joined);
  for (const ServedWorld::Seat& seat : world.seats)
    if (seat.contributes()) fail_waiting(*seat.connection, Status::deadline, message);
}

void RendezvousServer::Implementation::expire_survivors(ServedWorld& world) {
  const auto late = std::find_if(world.seats.begin(), world.seats.end(), [](const ServedWorld::Seat& seat) {
    return seat.asks() && seat.connection->waiting->deadline.passed();
  });
  if (late == world.seats.end()) return;
  const int asked_by = late->connection->rank;
  const double seconds = late->connection->waiting->deadline.total_seconds();
  std::vector<int> missing;  // collected before fail_world: its last call completes the agreement
  for (std::size_t rank = 0; rank < world.seats.size(); ++rank)
    if (world.seats[rank].state == RankState::healthy && !world.seats[rank].asks())
      missing.push_back(static_cast<int>(rank));
  for (const int rank : missing)
    fail_world(world, {rank, Status::peer_died, detail::unanswered_message(rank, asked_by, seconds), asked_by});
}

}  // namespace beeline
