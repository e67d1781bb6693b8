// SPDX-License-Identifier: Apache-2.0
#include "beeline/hpe/files.hpp"

#include <fmt/format.h>

#include <functional>
#include <memory>
#include <utility>

#include "beeline/core/error.hpp"
#include "hpe/files/block_io.hpp"
#include "hpe/files/gds.hpp"
#include "hpe/files/on_gpu_stream.hpp"
#include "hpe/files/transfer.hpp"
#include "hpe/owners.hpp"
#include "hpe/stream_state.hpp"

namespace beeline::hpe {

namespace {

std::byte* bytes_at(const void* address) { return static_cast<std::byte*>(const_cast<void*>(address)); }

/// The object that has the memory of a transfer on a host device's stream; nullptr: none. It is acquired during the
/// call: later the transfer would wait for launches behind it, which wait for the transfer.
detail::CopyingOwner* object_on_host_stream(const void* memory, std::size_t bytes, const Stream& stream) {
  if (bytes == 0 || stream.device().is_gpu()) return nullptr;
  static_cast<void>(detail::checked_memory(bytes_at(memory), bytes));
  return detail::range_of(memory).copying;
}

void put_on_stream(const std::filesystem::path& path, detail::FileDirection direction, const void* memory,
                   std::size_t bytes, Stream& stream, const FileOptions& options) {
  require(stream.state().own().capture() == 0, Status::unavailable,
          "a transfer of a file cannot become part of a graph: a graph repeats its work, and a file is opened once");
  if (stream.device().is_gpu() && options.variant != FileVariant::automatic)
    throw Error(
        Status::unavailable,
        fmt::format("the variant {} on a stream of {}: it would use the GPU while the stream waits for it, which "
                    "CUDA may not permit before that wait ends; use the variant automatic",
                    name(options.variant), stream.device().name()));
  if (detail::CopyingOwner* const object = object_on_host_stream(memory, bytes, stream)) {
    auto transfer = std::make_shared<detail::FileTransfer>(
        path, direction, object->address_for(bytes_at(memory), stream.state()), bytes, options);
    return object->put_work(bytes_at(memory), bytes, direction == detail::FileDirection::reads, stream.state(),
                            [&] { stream.enqueue([transfer = std::move(transfer)] { transfer->run(); }); });
  }
  auto transfer = std::make_shared<detail::FileTransfer>(path, direction, bytes_at(memory), bytes, options);
  const bool stages = !transfer->has_no_copies();
  if (stream.device().is_gpu())
    return stream.enqueue(detail::run_on_gpu_stream(std::move(transfer), stream.state(), stages));
  if (!transfer->is_on_gpu() || options.variant != FileVariant::automatic)
    return stream.enqueue([transfer = std::move(transfer)] { transfer->run(); });
  detail::StreamState& of_gpu = stream.state().stream_beside(detail::Runtime::get().state_of(transfer->device()));
  std::function<void()> report = detail::run_on_gpu_stream(std::move(transfer), of_gpu, stages, &stream.state());
  stream.state().wait_for(of_gpu);
  stream.enqueue(std::move(report));
}

}  // namespace

const char* name(FileVariant variant) {
  switch (variant) {
    case FileVariant::automatic:
      return "automatic";
    case FileVariant::user:
      return "user";
    case FileVariant::pinned:
      return "pinned";
    case FileVariant::double_buffered:
      return "double_buffered";
  }
  return "unknown";
}

std::size_t read_file(const std::filesystem::path& path, void* to, std::size_t bytes, const FileOptions& options) {
  detail::FileTransfer(path, detail::FileDirection::reads, bytes_at(to), bytes, options).run();
  return bytes;
}

std::size_t write_file(const std::filesystem::path& path, const void* from, std::size_t bytes,
                       const FileOptions& options) {
  detail::FileTransfer(path, detail::FileDirection::writes, bytes_at(from), bytes, options).run();
  return bytes;
}

void read_file(const std::filesystem::path& path, void* to, std::size_t bytes, Stream& stream,
               const FileOptions& options) {
  put_on_stream(path, detail::FileDirection::reads, to, bytes, stream, options);
}

void write_file(const std::filesystem::path& path, const void* from, std::size_t bytes, Stream& stream,
                const FileOptions& options) {
  put_on_stream(path, detail::FileDirection::writes, from, bytes, stream, options);
}

FileSupport file_support() { return {detail::no_uring_reason(), detail::no_gds_reason()}; }

}  // namespace beeline::hpe
