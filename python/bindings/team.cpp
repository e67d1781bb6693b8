// SPDX-License-Identifier: Apache-2.0
#include "team.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstddef>
#include <span>
#include <utility>

#include "bindings.hpp"
#include "timeout.hpp"
#include "unlocked.hpp"

namespace nb = nanobind;

namespace beeline::python {

namespace {

using Everyones = std::vector<std::vector<std::byte>>;

/// Calls a Python function of bytes that returns a sequence of bytes.
Everyones call(const nb::object& allgather, std::span<const std::byte> mine) {
  const nb::gil_scoped_acquire locked;
  Everyones all;
  for (const nb::handle each : allgather(nb::bytes(mine.data(), mine.size()))) {
    if (!nb::isinstance<nb::bytes>(each)) throw nb::type_error("allgather: expected a list of bytes from it");
    const auto theirs = nb::borrow<nb::bytes>(each);
    const auto* const data = static_cast<const std::byte*>(theirs.data());
    all.emplace_back(data, data + theirs.size());
  }
  return all;
}

}  // namespace

std::vector<nb::bytes> gathered(Team& team, const nb::bytes& mine) {
  const std::span bytes(static_cast<const std::byte*>(mine.data()), mine.size());
  const Everyones all = unlocked([&] { return team.allgather(bytes); }, &team);
  std::vector<nb::bytes> everyone;
  for (const auto& one : all) everyone.emplace_back(one.data(), one.size());
  return everyone;
}

std::optional<TeamObject> TeamObject::make(const std::shared_ptr<JoinedWorld>& world, const std::vector<int>& ranks,
                                           const nb::object& allgather, std::optional<double> deadline_s) {
  World& joined = world->world();
  require(!deadline_s || !allgather.is_none(), Status::invalid_argument,
          "deadline_s: the teams that all ranks of a world make together have the world's");
  std::unique_ptr<Team> team;
  if (allgather.is_none()) {
    team = unlocked([&] { return joined.make_team(ranks); }, &joined);
  } else {
    const std::int64_t deadline_ns = deadline_s ? deadline_ns_of(*deadline_s) : 0;
    const nb::gil_scoped_release unlocked;  // the called code may block
    const MemberAllgather gather = [&](std::span<const std::byte> mine) { return call(allgather, mine); };
    team = make_team_among(joined, ranks, gather, deadline_ns);
  }
  if (team == nullptr) return std::nullopt;
  return TeamObject(world, std::move(team));
}

TeamObject TeamObject::survivors(const std::shared_ptr<JoinedWorld>& world, std::optional<double> deadline_s) {
  World& joined = world->world();
  const std::int64_t deadline_ns = deadline_s ? deadline_ns_of(*deadline_s) : 0;
  return TeamObject(world, unlocked(
                               [&] {
                                 const Team& left = joined.survivors(deadline_ns);
                                 std::vector<int> ranks;
                                 for (int rank = 0; rank < left.size(); ++rank) ranks.push_back(left.world_rank(rank));
                                 return joined.make_team(ranks);
                               },
                               &joined));
}

const std::shared_ptr<Team>& TeamObject::team() const {
  static_cast<void>(world_->world());
  return team_;
}

std::vector<int> TeamObject::ranks() const {
  std::vector<int> all;
  for (int rank = 0; rank < team_->size(); ++rank) all.push_back(team_->world_rank(rank));
  return all;
}

void bind_team(nb::module_& module) {
  nb::class_<TeamObject>(module, "Team", R"(Some ranks of a world, with a barrier and an abort of their own.

Made by `World.make_team`. `Collectives(team)` are its collectives.)")
      .def_prop_ro(
          "rank", [](const TeamObject& self) { return self.known().rank(); }, "This rank's number in the team.")
      .def_prop_ro(
          "size", [](const TeamObject& self) { return self.known().size(); }, "How many members there are.")
      .def_prop_ro("ranks", &TeamObject::ranks, "The members' ranks in the world, by their rank in the team.")
      .def_prop_ro(
          "failed", [](const TeamObject& self) { return self.known().failed(); },
          "Whether the team is aborted: by a deadline of its own, or the end of a member.")
      .def(
          "barrier",
          [](const TeamObject& self, Seconds timeout) {
            const Timeout limit = timeout_of(timeout);
            Team& team = *self.team();
            require_over(unlocked([&] { return team.barrier(limit); }), "barrier", timeout, team.world().rank());
          },
          nb::kw_only(), nb::arg("timeout") = nb::none(),
          R"(Collective over the team. Blocks until all members call it; raises DeadlineError, naming the missing rank.

timeout  as of `World.barrier`)")
      .def(
          "allreduce",
          [](const TeamObject& self, nb::handle value, const std::string& reduction) {
            return allreduced(*self.team(), value, reduction);
          },
          nb::arg("value"), nb::arg("reduction") = "sum", "Collective over the team: as `World.allreduce`.")
      .def(
          "allgather", [](const TeamObject& self, const nb::bytes& mine) { return gathered(*self.team(), mine); },
          nb::arg("data"), "Collective over the team. Everyone's bytes, by rank of the team: at most 120 of each.")
      .def("__repr__", [](const TeamObject& self) {
        return fmt::format("<beeline.Team of ranks {}>", fmt::join(self.ranks(), ", "));
      });
}

}  // namespace beeline::python
