// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Descriptors of all ranks to all ranks over Unix sockets: rank 0 collects them and hands out the set.

#include <memory>
#include <string>
#include <vector>

#include "beeline/runtime/file_descriptor.hpp"
#include "runtime/deadline.hpp"

namespace beeline::detail {

/// One rank's end. Functions throw deadline, peer_died, aborted (when `cancel` gets readable) or no_resource.
class DescriptorExchange {
 public:
  DescriptorExchange(int rank, int size, int cancel) : rank_(rank), size_(size), cancel_(cancel) {}

  /// Rank 0 listens; returns the name (random, in the abstract namespace) that the others connect to.
  [[nodiscard]] std::string open();
  /// The other ranks connect, rank 0 accepts them all. Only processes of the same user are let in.
  void connect(const std::string& name, const Deadline& deadline);
  [[nodiscard]] std::vector<FileDescriptor> exchange(int mine, const Deadline& deadline);

 private:
  void accept_all(const Deadline& deadline);
  void wait(int socket, short events, int peer, const Deadline& deadline) const;
  void send(int socket, const std::vector<FileDescriptor>& descriptors, int peer, const Deadline& deadline) const;
  [[nodiscard]] std::vector<FileDescriptor> receive(int socket, int peer, std::size_t count,
                                                    const Deadline& deadline) const;

  int rank_, size_, cancel_;
  FileDescriptor listener_;
  std::vector<FileDescriptor> peers_;  ///< rank 0: by rank, its own empty; others: rank 0's only
};

}  // namespace beeline::detail
