// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The computation as a kernel of its own, for the methods that communicate outside kernels.

#include "domain.hpp"

namespace jacobi {

class Update {
 public:
  /// Updates two pieces, either of which may be empty.
  explicit Update(const Domain& domain, const Piece& one, const Piece& other = {});

  /// Enqueues the update of both pieces in iteration `iteration` on the default stream.
  void enqueue(std::uint64_t iteration) const;

 private:
  const Domain& domain_;
  Piece one_, other_;
  unsigned blocks_;
};

}  // namespace jacobi
