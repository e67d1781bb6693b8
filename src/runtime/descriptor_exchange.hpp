// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Descriptors of all ranks to all ranks over Unix sockets: rank 0 collects them and hands out the set.

#include <string>
#include <vector>

#include "beeline/runtime/file_descriptor.hpp"
#include "runtime/deadline.hpp"

namespace beeline::detail {

/// One rank's end. Functions throw deadline, peer_died, aborted (when `cancel` gets readable) or no_resource.
class DescriptorExchange {
 public:
  /// Among `members`, which hold `rank`; the first of them collects.
  DescriptorExchange(int rank, std::vector<int> members, int cancel);

  /// The first member listens; returns the name (random, in the abstract namespace) that the others connect to.
  [[nodiscard]] std::string open();
  /// The others connect, the first accepts them all. Only processes of the same user are let in.
  void connect(const std::string& name, const Deadline& deadline);
  /// By place among the members.
  [[nodiscard]] std::vector<FileDescriptor> exchange(int mine, const Deadline& deadline);

 private:
  void accept_all(const Deadline& deadline);
  void wait(int socket, short events, int peer, const Deadline& deadline) const;
  void send(int socket, const std::vector<FileDescriptor>& descriptors, int peer, const Deadline& deadline) const;
  [[nodiscard]] std::vector<FileDescriptor> receive(int socket, int peer, std::size_t count,
                                                    const Deadline& deadline) const;

  std::vector<int> members_;
  int rank_, size_, place_ = 0, cancel_;  ///< place_: of rank_ among the members; size_: how many they are
  FileDescriptor listener_;
  std::vector<FileDescriptor> peers_;  ///< first member: by place, its own empty; others: the first member's only
};

}  // namespace beeline::detail
