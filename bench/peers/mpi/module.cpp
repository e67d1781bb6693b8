// SPDX-License-Identifier: Apache-2.0
// A shared object of its own, so that programs load MPI only where ranks were started by it.
#include "peers/mpi/module.hpp"

#include <mpi.h>

#include <algorithm>
#include <climits>
#include <vector>

namespace {

constexpr int root = 0;
int ranks = 0, own_rank = 0;
char message[MPI_MAX_ERROR_STRING];
char library[MPI_MAX_LIBRARY_VERSION_STRING];

const char* text_of(int result) {
  if (result == MPI_SUCCESS) return nullptr;
  int length = 0;
  if (MPI_Error_string(result, message, &length) != MPI_SUCCESS) return "MPI failed";
  return message;
}

const char* start(int* rank, int* size) {
  if (const char* failed = text_of(MPI_Init(nullptr, nullptr))) return failed;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  if (const char* failed = text_of(MPI_Comm_rank(MPI_COMM_WORLD, &own_rank))) return failed;
  if (const char* failed = text_of(MPI_Comm_size(MPI_COMM_WORLD, &ranks))) return failed;
  *rank = own_rank, *size = ranks;
  return nullptr;
}

const char* version() {
  int length = 0;
  if (MPI_Get_library_version(library, &length) != MPI_SUCCESS) return "unknown";
  for (char* at = library; *at != '\0'; ++at)
    if (*at == ',' || *at == '\n') *at = '\0';
  return library;
}

/// Calls `use` with the count as MPI takes it; the elements of all pieces must fit, too.
template <class Use>
const char* with_count(std::size_t count, Use use) {
  if (count > static_cast<std::size_t>(INT_MAX / ranks)) return "more elements than MPI's counts hold";
  return text_of(use(static_cast<int>(count)));
}

/// MPI_Bcast has one buffer: the root's copy of its own vector is part of the call.
const char* broadcast(const void* source, void* destination, std::size_t count) {
  return with_count(count, [=](int each) {
    if (own_rank != root) return MPI_Bcast(destination, each, MPI_FLOAT, root, MPI_COMM_WORLD);
    const auto* from = static_cast<const float*>(source);
    std::copy(from, from + count, static_cast<float*>(destination));
    return MPI_Bcast(destination, each, MPI_FLOAT, root, MPI_COMM_WORLD);
  });
}

const char* scatter(const void* source, void* destination, std::size_t count) {
  return with_count(count, [=](int each) {
    return MPI_Scatter(source, each, MPI_FLOAT, destination, each, MPI_FLOAT, root, MPI_COMM_WORLD);
  });
}

const char* gather(const void* source, void* destination, std::size_t count) {
  return with_count(count, [=](int each) {
    return MPI_Gather(source, each, MPI_FLOAT, destination, each, MPI_FLOAT, root, MPI_COMM_WORLD);
  });
}

const char* allgather(const void* source, void* destination, std::size_t count) {
  return with_count(count, [=](int each) {
    return MPI_Allgather(source, each, MPI_FLOAT, destination, each, MPI_FLOAT, MPI_COMM_WORLD);
  });
}

const char* reduce(const void* source, void* destination, std::size_t count) {
  return with_count(
      count, [=](int each) { return MPI_Reduce(source, destination, each, MPI_FLOAT, MPI_SUM, root, MPI_COMM_WORLD); });
}

const char* allreduce(const void* source, void* destination, std::size_t count) {
  return with_count(
      count, [=](int each) { return MPI_Allreduce(source, destination, each, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD); });
}

const char* reduce_scatter(const void* source, void* destination, std::size_t count) {
  return with_count(count, [=](int each) {
    return MPI_Reduce_scatter_block(source, destination, each, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  });
}

const char* alltoall(const void* source, void* destination, std::size_t count) {
  return with_count(count, [=](int each) {
    return MPI_Alltoall(source, each, MPI_FLOAT, destination, each, MPI_FLOAT, MPI_COMM_WORLD);
  });
}

const char* alltoallv(const void* source, void* destination, std::size_t count) {
  return with_count(count, [=](int each) {
    std::vector<int> counts, offsets;
    for (int rank = 0; rank < ranks; ++rank) counts.push_back(each), offsets.push_back(rank * each);
    return MPI_Alltoallv(source, counts.data(), offsets.data(), MPI_FLOAT, destination, counts.data(), offsets.data(),
                         MPI_FLOAT, MPI_COMM_WORLD);
  });
}

const char* barrier() { return text_of(MPI_Barrier(MPI_COMM_WORLD)); }

const char* send(const void* source, std::size_t bytes, int peer) {
  if (bytes > INT_MAX) return "more bytes than MPI's counts hold";
  return text_of(MPI_Send(source, static_cast<int>(bytes), MPI_BYTE, peer, 0, MPI_COMM_WORLD));
}

const char* receive(void* destination, std::size_t bytes, int peer) {
  if (bytes > INT_MAX) return "more bytes than MPI's counts hold";
  return text_of(MPI_Recv(destination, static_cast<int>(bytes), MPI_BYTE, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
}

void stop() { MPI_Finalize(); }

constexpr BeelineMpiModule functions = {start,     version, broadcast, scatter,        gather,
                                        allgather, reduce,  allreduce, reduce_scatter, alltoall,
                                        alltoallv, barrier, send,      receive,        stop};

}  // namespace

const BeelineMpiModule* beeline_mpi_module() { return &functions; }
