// SPDX-License-Identifier: Apache-2.0
#include "control/adapters/rma_server.hpp"
#include "control/adapters/verbs_server.hpp"
#include "host/resident_adapter.hpp"
#include "host/resident_block.hpp"

namespace beeline {

template <class Server>
ResidentAdapter<Server>::ResidentAdapter(Team& team, typename Server::Ring* rings, std::uint32_t count,
                                         const char* name)
    : team_(team), rings_(rings), count_(count), name_(name), pieces_(team), moves_(team, count) {
  grid_.emplace(team,
                LeasedGrid::Work{.name = name,
                                 .room = room_of_block<AdapterKernel<Server>, AdapterService<Server>>(team.world()),
                                 .start = [this](Stream& stream, const Lease& lease) { start(stream, lease); }});
}

template <class Server>
void ResidentAdapter<Server>::start(Stream& stream, const Lease& lease) {
  pieces_.show(stream);
  AdapterService<Server> adapter{};
  adapter.service.pieces = pieces_.data();
  adapter.service.piece_count = pieces_.count();
  adapter.service.queues = count_;
  adapter.service.ranks = static_cast<std::uint32_t>(team_.world().size());
  adapter.service.lease = lease;
  adapter.rings = rings_;
  adapter.moves = moves_.data();
  launch(team_.world(), {.threads = engine_block_threads, .stream = &stream, .name = name_}, AdapterKernel<Server>{},
         adapter);
}

template class ResidentAdapter<RmaServer>;
template class ResidentAdapter<VerbsServer>;

}  // namespace beeline
