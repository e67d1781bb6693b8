// SPDX-License-Identifier: Apache-2.0
#include "peers/nccl/nccl.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <cstring>
#include <span>

namespace beeline::bench::nccl {

namespace {

// The part of NCCL's C interface that is used, as of version 2.10, which brought bfloat16. Source: NCCL's user guide.
struct UniqueId {
  char internal[128];
};
using Result = int;  // 0: success
using Comm = void*;
using CudaStream = void*;
constexpr int float32 = 7, bfloat16 = 9, sum = 0, oldest_version = 21000;

/// The functions of one loaded library.
struct Library {
  Result (*get_version)(int*);
  const char* (*get_error_string)(Result);
  Result (*get_unique_id)(UniqueId*);
  Result (*comm_init_rank)(Comm*, int ranks, UniqueId, int rank);
  Result (*comm_destroy)(Comm);
  Result (*all_reduce)(const void*, void*, std::size_t, int type, int operation, Comm, CudaStream);
  int version = 0;
};

template <class Function>
void find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  require(function != nullptr, Status::unavailable, fmt::format("NCCL has no {}", name));
}

void check(const Library& library, Result result, const char* call) {
  if (result != 0) throw Error(Status::internal, fmt::format("{}: {}", call, library.get_error_string(result)));
}

/// The library stays open until the process ends: NCCL's threads may outlive a communicator.
Library open() {
  setenv("NCCL_NVLS_ENABLE", "0", 0);  // like with like: nothing here uses the switches' multicast
  const char* named = std::getenv("BEELINE_NCCL");
  void* handle = dlopen(named != nullptr ? named : "libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) throw Error(Status::unavailable, fmt::format("NCCL is absent: {}", dlerror()));
  Library library{};
  find(handle, "ncclGetVersion", library.get_version);
  find(handle, "ncclGetErrorString", library.get_error_string);
  find(handle, "ncclGetUniqueId", library.get_unique_id);
  find(handle, "ncclCommInitRank", library.comm_init_rank);
  find(handle, "ncclCommDestroy", library.comm_destroy);
  find(handle, "ncclAllReduce", library.all_reduce);
  check(library, library.get_version(&library.version), "ncclGetVersion");
  require(library.version >= oldest_version, Status::unavailable,
          fmt::format("NCCL {} is too old: at least {}", library.version, oldest_version));
  return library;
}

class Loaded final : public Communicator {
 public:
  Loaded(Session& session, const Library& library) : library_(library) {
    const World& world = session.world();
    UniqueId id{};
    if (session.leads()) check(library_, library_.get_unique_id(&id), "ncclGetUniqueId");
    const auto ids = session.world().allgather(std::as_bytes(std::span(&id, 1)));
    std::memcpy(&id, ids.front().data(), sizeof id);
    use_gpu(world.device().index);
    check(library_, library_.comm_init_rank(&comm_, world.size(), id, world.rank()), "ncclCommInitRank");
  }
  ~Loaded() override { static_cast<void>(library_.comm_destroy(comm_)); }
  Loaded(const Loaded&) = delete;
  Loaded& operator=(const Loaded&) = delete;

  [[nodiscard]] std::string version() const override {
    const int version = library_.version;
    return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
  }

  void start(CollectiveKind kind, const VectorPair& vectors, Stream& stream) override {
    const int type = vectors.type == ElementType::bfloat16 ? bfloat16 : float32;
    switch (kind) {
      case CollectiveKind::allreduce:
        return check(
            library_,
            library_.all_reduce(vectors.source, vectors.destination, vectors.count, type, sum, comm_, stream.native()),
            "ncclAllReduce");
    }
  }

 private:
  Library library_;
  Comm comm_ = nullptr;
};

std::shared_ptr<Communicator> make(Session& session) {
  require(session.everywhere(session.world().device().is_gpu()), Status::unavailable, "NCCL's ranks are GPUs");
  Library library{};
  std::exception_ptr failure;
  try {
    library = open();
  } catch (const Error&) {
    failure = std::current_exception();
  }
  const bool everywhere = session.everywhere(failure == nullptr);
  if (failure != nullptr) std::rethrow_exception(failure);
  require(everywhere, Status::unavailable, "another rank has no NCCL");
  try {
    return std::make_shared<Loaded>(session, library);
  } catch (const Error& error) {  // ranks that share a GPU, for one
    throw Error(Status::unavailable, error.what());
  }
}

}  // namespace

std::shared_ptr<Communicator> Communicators::get(Session& session) {
  if (communicator_ == nullptr && failure_ == nullptr) {
    try {
      communicator_ = make(session);
    } catch (const Error&) {
      failure_ = std::current_exception();
    }
  }
  if (failure_ != nullptr) std::rethrow_exception(failure_);
  return communicator_;
}

}  // namespace beeline::bench::nccl
