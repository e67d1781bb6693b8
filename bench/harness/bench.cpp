// SPDX-License-Identifier: Apache-2.0
#include "harness/bench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <span>

namespace beeline::bench {

std::uint64_t Bench::from_leader(std::uint64_t value) const {
  const auto all = world_.allgather(std::as_bytes(std::span(&value, 1)));
  std::memcpy(&value, all.front().data(), sizeof value);
  return value;
}

std::vector<std::uint64_t> Bench::from_all(std::uint64_t value) const {
  std::vector<std::uint64_t> values;
  for (const auto& bytes : world_.allgather(std::as_bytes(std::span(&value, 1))))
    std::memcpy(&values.emplace_back(), bytes.data(), sizeof value);
  return values;
}

std::uint64_t Bench::least(std::uint64_t value) const {
  const std::vector<std::uint64_t> values = from_all(value);
  return *std::min_element(values.begin(), values.end());
}

std::vector<double> Bench::slowest(const std::vector<double>& mine) const {
  std::vector<double> all = mine, theirs(mine.size());
  for (const auto& bytes : world_.allgather(std::as_bytes(std::span(mine)))) {
    if (bytes.size() != mine.size() * sizeof(double)) continue;  // the rank has failed or left
    std::memcpy(theirs.data(), bytes.data(), bytes.size());
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = std::max(all[i], theirs[i]);
  }
  return all;
}

void Bench::require_alike() const {
  for (int rank = 1; rank < world_.size(); ++rank)
    require(world_.device(rank).is_gpu() == world_.device(0).is_gpu(), Status::unavailable,
            fmt::format("grids of a GPU and of a host rank do not match: ranks 0 and {} differ in kind", rank));
}

void Bench::require_reach_of_engines(bool both_send) const {
  if (world_.size() < 2) return;
  const bool first = world_.device(0).is_gpu(), second = world_.device(1).is_gpu();
  require(first == second || (first && !both_send), Status::unavailable,
          "the engine of a host rank does not reach memory of a GPU");
}

void Bench::require_loads_and_stores() const {
  for (int rank = 0; rank < world_.size(); ++rank)
    require(world_.host_context().access_to(static_cast<std::uint32_t>(rank)).access == PeerAccess::direct,
            Status::unreachable,
            fmt::format("loads and stores do not reach rank {} from rank {}", rank, world_.rank()));
}

bool Bench::everywhere(bool mine) const {
  const std::byte vote{mine};
  for (const auto& other : world_.allgather(std::span(&vote, 1)))
    if (other.front() == std::byte{0}) return false;
  return true;
}

std::string Bench::first_error(const std::string& mine) const {
  const auto all = world_.allgather(std::as_bytes(std::span(mine)));
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank].empty()) continue;
    return fmt::format("rank {}: {}", rank,
                       std::string(reinterpret_cast<const char*>(all[rank].data()), all[rank].size()));
  }
  return {};
}

void Bench::together(const std::function<void()>& work, const char* lacking) const {
  std::exception_ptr failure;
  try {
    work();
  } catch (const Error&) {
    failure = std::current_exception();
  }
  const bool all = everywhere(failure == nullptr);
  if (failure != nullptr) std::rethrow_exception(failure);
  require(all, Status::unavailable, fmt::format("another rank has no {}", lacking));
}

void Bench::require_ok(Status status, const char* what) const {
  if (status == Status::ok) return;
  world_.check();
  throw Error(status, fmt::format("{}: {}", what, name(status)), world_.rank());
}

void Bench::let_go() {
  for (std::shared_ptr<void>& one : kept_) one.reset();
  kept_.clear();
}

NearTeam::NearTeam(Bench& bench) : team_(&bench.world()) {
  const bool is_near = bench.world().host_context().access_to(0).access == PeerAccess::direct;
  const std::vector<std::uint64_t> near = bench.from_all(is_near ? 1 : 0);
  std::vector<int> members;
  for (int rank = 0; rank < static_cast<int>(near.size()); ++rank)
    if (near[static_cast<std::size_t>(rank)] != 0) members.push_back(rank);
  if (members.size() == near.size() || near[1] == 0) return;
  own_ = bench.world().make_team(is_near ? members : std::vector<int>{});
  team_ = own_.get();
}

}  // namespace beeline::bench
