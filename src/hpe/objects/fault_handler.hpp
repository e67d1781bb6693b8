// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Accesses of CPU threads to objects' blocks that are not current on the host.

#include <cstdint>
#include <memory>

#include "hpe/objects/block_object.hpp"

namespace beeline::hpe::detail {

/// An object that cannot be destroyed meanwhile.
struct Unpin {
  void operator()(BlockObject* object) const noexcept { object->unpin(); }
};
using PinnedObject = std::unique_ptr<BlockObject, Unpin>;

/// The object that contains an address. Signal handlers may call it.
[[nodiscard]] PinnedObject pinned_object_at(const void* address) noexcept;
/// Waits until calls of `pinned_object_at` that have begun before have ended, which they do at once.
void await_lookups() noexcept;
/// In a forked process: calls of the parent's threads do not end here.
void forget_lookups() noexcept;

/// Makes sure that the library's handler of SIGSEGV is the first one. It passes on other faults to the handler that was
/// there before. Called for each object and launch, since programs install handlers at any time.
void install_fault_handler();

}  // namespace beeline::hpe::detail
