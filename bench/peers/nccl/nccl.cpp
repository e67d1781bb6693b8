// SPDX-License-Identifier: Apache-2.0
#include "peers/nccl/nccl.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <cstring>
#include <optional>
#include <span>

namespace beeline::bench::nccl {

namespace {

// The part of NCCL's C interface that is used, as of version 2.10, which introduced bfloat16. Source: NCCL's user
// guide.
struct UniqueId {
  char internal[128];
};
using Result = int;  // 0: success
using Comm = void*;
using CudaStream = void*;
constexpr int int8 = 0, float32 = 7, bfloat16 = 9, sum = 0, root = 0, oldest_version = 21000;
using Move = Result (*)(const void*, void*, std::size_t, int type, Comm, CudaStream);
using MoveByRoot = Result (*)(const void*, void*, std::size_t, int type, int root, Comm, CudaStream);
using Reduce = Result (*)(const void*, void*, std::size_t, int type, int operation, Comm, CudaStream);
using ReduceToRoot = Result (*)(const void*, void*, std::size_t, int type, int operation, int root, Comm, CudaStream);

/// A function found by name, convertible to any function pointer type.
struct Function {
  void* address;

  template <class Signature>
  operator Signature*() const {  // NOLINT(google-explicit-constructor)
    return reinterpret_cast<Signature*>(address);
  }
};

/// The library stays open until the process ends: NCCL's threads may outlive a communicator.
void* open() {
  setenv("NCCL_NVLS_ENABLE", "0", 0);  // for a fair comparison: Beeline does not use the switches' multicast here
  const char* named = std::getenv("BEELINE_NCCL");
  void* library = dlopen(named != nullptr && *named != '\0' ? named : "libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw Error(Status::unavailable, fmt::format("NCCL is absent: {}", dlerror()));
  return library;
}

Function find(void* library, const char* name) {
  void* const function = dlsym(library, name);
  require(function != nullptr, Status::unavailable, fmt::format("NCCL has no {}", name));
  return {function};
}

/// The functions of one loaded library.
struct Library {
  void* handle = open();
  Result (*get_version)(int*) = find(handle, "ncclGetVersion");
  const char* (*get_error_string)(Result) = find(handle, "ncclGetErrorString");
  Result (*get_unique_id)(UniqueId*) = find(handle, "ncclGetUniqueId");
  Result (*comm_init_rank)(Comm*, int ranks, UniqueId, int rank) = find(handle, "ncclCommInitRank");
  Result (*comm_destroy)(Comm) = find(handle, "ncclCommDestroy");
  MoveByRoot broadcast = find(handle, "ncclBroadcast");
  Move all_gather = find(handle, "ncclAllGather");
  ReduceToRoot reduce = find(handle, "ncclReduce");
  Reduce all_reduce = find(handle, "ncclAllReduce"), reduce_scatter = find(handle, "ncclReduceScatter");
  Result (*group_start)() = find(handle, "ncclGroupStart");
  Result (*group_end)() = find(handle, "ncclGroupEnd");
  Result (*send)(const void*, std::size_t, int type, int peer, Comm, CudaStream) = find(handle, "ncclSend");
  Result (*receive)(void*, std::size_t, int type, int peer, Comm, CudaStream) = find(handle, "ncclRecv");
  // These functions exist since 2.28; otherwise they are nullptr, and grouped sends and receives replace them.
  MoveByRoot scatter = Function{dlsym(handle, "ncclScatter")}, gather = Function{dlsym(handle, "ncclGather")};
  Move all_to_all = Function{dlsym(handle, "ncclAlltoAll")};
  int version = 0;

  Library() {
    check(get_version(&version), "ncclGetVersion");
    require(version >= oldest_version, Status::unavailable,
            fmt::format("NCCL {} is too old: at least {}", version, oldest_version));
  }

  void check(Result result, const char* call) const {
    if (result != 0) throw Error(Status::internal, fmt::format("NCCL's {}: {}", call, get_error_string(result)));
  }
};

class Loaded final : public Communicator {
 public:
  Loaded(Bench& bench, const Library& library)
      : library_(library), rank_(bench.world().rank()), ranks_(bench.world().size()) {
    const World& world = bench.world();
    UniqueId id{};
    if (bench.leads()) library_.check(library_.get_unique_id(&id), "ncclGetUniqueId");
    const auto ids = bench.world().allgather(std::as_bytes(std::span(&id, 1)));
    std::memcpy(&id, ids.front().data(), sizeof id);
    use_gpu(world.device().index);
    library_.check(library_.comm_init_rank(&comm_, world.size(), id, world.rank()), "ncclCommInitRank");
  }
  ~Loaded() override { static_cast<void>(library_.comm_destroy(comm_)); }
  Loaded(const Loaded&) = delete;
  Loaded& operator=(const Loaded&) = delete;

  [[nodiscard]] std::string version() const override {
    const int version = library_.version;
    return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
  }

  void start(Operation operation, const VectorPair& vectors, Stream& stream) override {
    const Call call{vectors.source, vectors.destination, vectors.count,
                    vectors.type == ElementType::bfloat16 ? bfloat16 : float32, stream.native()};
    library_.check(run(operation, call), name(operation));
  }
  void send(const void* source, std::size_t bytes, int peer, Stream& stream) override {
    library_.check(library_.send(source, bytes, int8, peer, comm_, stream.native()), "send");
  }
  void receive(void* destination, std::size_t bytes, int peer, Stream& stream) override {
    library_.check(library_.receive(destination, bytes, int8, peer, comm_, stream.native()), "receive");
  }

 private:
  struct Call {
    const void* source;
    void* destination;
    std::size_t count;
    int type;
    CudaStream stream;
  };

  Result run(Operation operation, const Call& call) const {
    switch (operation) {
      case Operation::broadcast:
        return by_root(library_.broadcast, call);
      case Operation::scatter:
        if (library_.scatter != nullptr) return by_root(library_.scatter, call);
        break;
      case Operation::gather:
        if (library_.gather != nullptr) return by_root(library_.gather, call);
        break;
      case Operation::allgather:
        return library_.all_gather(call.source, call.destination, call.count, call.type, comm_, call.stream);
      case Operation::reduce:
        return library_.reduce(call.source, call.destination, call.count, call.type, sum, root, comm_, call.stream);
      case Operation::reduce_scatter:
        return library_.reduce_scatter(call.source, call.destination, call.count, call.type, sum, comm_, call.stream);
      case Operation::alltoall:
        if (library_.all_to_all == nullptr) break;
        return library_.all_to_all(call.source, call.destination, call.count, call.type, comm_, call.stream);
      case Operation::allreduce:
        return library_.all_reduce(call.source, call.destination, call.count, call.type, sum, comm_, call.stream);
      default:
        break;
    }
    return exchange(*find_shape(operation), call);
  }

  Result by_root(MoveByRoot function, const Call& call) const {
    return function(call.source, call.destination, call.count, call.type, root, comm_, call.stream);
  }

  /// Moves data by grouped sends and receives, as in NCCL's user guide.
  Result exchange(const CollectiveShape& shape, const Call& call) const {
    require(!shape.reduces, Status::unavailable, fmt::format("NCCL has no {}", name(shape.operation)));
    const std::size_t piece = call.count * (call.type == bfloat16 ? 2 : 4);
    const auto* from = static_cast<const std::byte*>(call.source);
    auto* to = static_cast<std::byte*>(call.destination);
    Result first = library_.group_start();
    const auto note = [&first](Result result) { first = first != 0 ? first : result; };
    for (int peer = 0; peer < ranks_; ++peer) {
      const std::size_t place = static_cast<unsigned>(peer) * piece;
      if (connects(shape, rank_, peer))
        note(library_.send(from + (has_pieces(shape.source) ? place : 0), call.count, call.type, peer, comm_,
                           call.stream));
      if (connects(shape, peer, rank_))
        note(library_.receive(to + (has_pieces(shape.destination) ? place : 0), call.count, call.type, peer, comm_,
                              call.stream));
    }
    note(library_.group_end());
    return first;
  }

  static bool connects(const CollectiveShape& shape, int sender, int receiver) {
    return (!is_of_root(shape.source) || sender == root) && (!is_of_root(shape.destination) || receiver == root);
  }

  Library library_;
  int rank_, ranks_;
  Comm comm_ = nullptr;
};

std::shared_ptr<Communicator> make(Bench& bench) {
  require(bench.everywhere(bench.world().device().is_gpu()), Status::unavailable, "NCCL's ranks are GPUs");
  std::optional<Library> library;
  bench.together([&] { library.emplace(); }, "NCCL");
  try {
    return std::make_shared<Loaded>(bench, *library);
  } catch (const Error& error) {  // for example, ranks share a GPU
    throw Error(Status::unavailable, error.what());
  }
}

}  // namespace

std::shared_ptr<Communicator> Communicators::get(Bench& bench) {
  if (communicator_ == nullptr && failure_ == nullptr) {
    try {
      communicator_ = make(bench);
    } catch (const Error&) {
      failure_ = std::current_exception();
    }
  }
  if (failure_ != nullptr) std::rethrow_exception(failure_);
  return communicator_;
}

}  // namespace beeline::bench::nccl
