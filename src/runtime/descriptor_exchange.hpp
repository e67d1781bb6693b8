// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Exchanges descriptors among all ranks over Unix sockets: the first member collects and distributes them.

#include <string>
#include <vector>

#include "beeline/runtime/file_descriptor.hpp"
#include "runtime/deadline.hpp"

namespace beeline::detail {

/// One rank's end. Functions throw deadline, peer_died, aborted (when `cancel` becomes readable) or no_resource.
class DescriptorExchange {
 public:
  /// Exchange among `members`, which include `rank`; the first of them collects.
  DescriptorExchange(int rank, std::vector<int> members, int cancel);

  /// Called by the first member: listens. Returns the name (random, in the abstract namespace) that the others connect
  /// to.
  [[nodiscard]] std::string open();
  /// The other members connect, and the first accepts them. Only processes of the same user are accepted.
  void connect(const std::string& name, const Deadline& deadline);
  /// Returns the descriptors in the order of the members.
  [[nodiscard]] std::vector<FileDescriptor> exchange(int mine, const Deadline& deadline);

 private:
  void accept_all(const Deadline& deadline);
  void wait(int socket, short events, int peer, const Deadline& deadline) const;
  void send(int socket, const std::vector<FileDescriptor>& descriptors, int peer, const Deadline& deadline) const;
  [[nodiscard]] std::vector<FileDescriptor> receive(int socket, int peer, std::size_t count,
                                                    const Deadline& deadline) const;

  std::vector<int> members_;
  int rank_, size_, place_ = 0, cancel_;  ///< place_: index of rank_ among the members; size_: number of members
  FileDescriptor listener_;
  std::vector<FileDescriptor> peers_;  ///< first member: by index, its own empty; others: the first member's only
};

}  // namespace beeline::detail
