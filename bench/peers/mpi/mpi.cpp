// SPDX-License-Identifier: Apache-2.0
#include "peers/mpi/mpi.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <filesystem>

#include "peers/mpi/module.hpp"

namespace beeline::bench::mpi {

namespace {

/// MPI starts and ends only once in a process.
const BeelineMpiModule* started = nullptr;

void check(const char* failure, const std::string& call) {
  if (failure != nullptr) throw Error(Status::internal, fmt::format("{}: {}", call, failure));
}

/// Opens the module, which lies next to the program. Its symbols are global, because Open MPI's plug-ins need them.
const BeelineMpiModule& open() {
  const auto path = std::filesystem::read_symlink("/proc/self/exe").parent_path() / BEELINE_MPI_MODULE;
  require(std::filesystem::exists(path), Status::unavailable, "this program was built without MPI");
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (handle == nullptr) throw Error(Status::unavailable, fmt::format("MPI is absent: {}", dlerror()));
  using Entry = const BeelineMpiModule* (*)();
  const auto entry = reinterpret_cast<Entry>(dlsym(handle, "beeline_mpi_module"));
  require(entry != nullptr, Status::unavailable, "the module of MPI has no entry");
  return *entry();
}

void start(Bench& bench) {
  const World& world = bench.world();
  const std::string launcher = world.config().launcher.name;
  require(launcher == "mpirun", Status::unavailable, "ranks were not started by mpirun, as MPI's are");
  const BeelineMpiModule& module = open();
  int rank = 0, size = 0;
  check(module.start(&rank, &size), "MPI_Init");
  started = &module;
  require(rank == world.rank() && size == world.size(), Status::unavailable,
          fmt::format("rank {} of {} is {} of {} in MPI", world.rank(), world.size(), rank, size));
}

class AllRanks final : public Communicator {
 public:
  [[nodiscard]] std::string version() const override { return started->version(); }
  void call(Operation operation, const VectorPair& vectors) override {
    check(started->call(operation, vectors.source, vectors.destination, vectors.count),
          fmt::format("MPI's {}", name(operation)));
  }
  void barrier() override { check(started->barrier(), "MPI_Barrier"); }
  void send(const void* source, std::size_t bytes, int peer) override {
    check(started->send(source, bytes, peer), "MPI_Send");
  }
  void receive(void* destination, std::size_t bytes, int peer) override {
    check(started->receive(destination, bytes, peer), "MPI_Recv");
  }
};

}  // namespace

std::shared_ptr<Communicator> communicator(Bench& bench) {
  require(bench.options().type == ElementType::float32, Status::unavailable,
          fmt::format("MPI has no {}", name(bench.options().type)));
  bench.together(
      [&] {
        if (started == nullptr) start(bench);
      },
      "MPI");
  return std::make_shared<AllRanks>();
}

void stop() {
  if (started != nullptr) started->stop();
  started = nullptr;
}

}  // namespace beeline::bench::mpi
