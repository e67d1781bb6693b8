// SPDX-License-Identifier: Apache-2.0
#include "beeline/hpe/files.hpp"

#include <fmt/format.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "bindings.hpp"
#include "keywords.hpp"
#include "tensor.hpp"
#include "unlocked.hpp"

namespace nb = nanobind;

namespace beeline::python {

namespace {

hpe::FileVariant variant_of(const std::string& text) {
  using enum hpe::FileVariant;
  const char* const names[] = {name(automatic), name(user), name(pinned), name(double_buffered)};
  return static_cast<hpe::FileVariant>(choice_of("variant", text, names));
}

hpe::FileAccess access_of(const std::string& text) {
  const char* const names[] = {"automatic", "direct", "buffered"};
  return static_cast<hpe::FileAccess>(choice_of("access", text, names));
}

/// Keywords of both functions.
struct FileKeywords {
  std::uint64_t offset;
  std::string variant, access;
  std::size_t block_bytes;
  unsigned blocks_in_flight;
  std::optional<double> deadline_s;
  nb::object progress;

  [[nodiscard]] hpe::FileOptions options() const {
    hpe::FileOptions options{.offset = offset,
                             .variant = variant_of(variant),
                             .access = access_of(access),
                             .block_bytes = block_bytes,
                             .blocks_in_flight = blocks_in_flight,
                             .deadline = deadline_of(deadline_s)};
    if (!progress.is_none())
      options.progress = [call = nb::handle(progress)](std::size_t moved, std::size_t all) {
        const nb::gil_scoped_acquire locked;
        call(moved, all);
      };
    return options;
  }
};

/// Waits for what torch has enqueued for a tensor of a GPU: the transfer has streams of its own.
void await_torch(const Tensor& tensor) {
  if (tensor.gpu < 0 || !nb::hasattr(tensor.owner, "is_cuda") || !nb::hasattr(tensor.owner, "device")) return;
  const nb::object stream = nb::module_::import_("torch").attr("cuda").attr("current_stream");
  stream(tensor.owner.attr("device")).attr("synchronize")();
}

std::size_t read_tensor(const std::filesystem::path& path, const nb::object& object, const FileKeywords& keywords) {
  const Tensor tensor = tensor_of(object, "tensor", Access::write);
  const hpe::FileOptions options = keywords.options();
  await_torch(tensor);
  return unlocked([&] { return hpe::read_file(path, tensor.data, tensor.bytes, options); });
}

std::size_t write_tensor(const std::filesystem::path& path, const nb::object& object, const FileKeywords& keywords,
                         bool durable) {
  const Tensor tensor = tensor_of(object, "tensor", Access::read);
  hpe::FileOptions options = keywords.options();
  options.durable = durable;
  await_torch(tensor);
  return unlocked([&] { return hpe::write_file(path, tensor.data, tensor.bytes, options); });
}

constexpr const char* read_doc = R"(Reads the bytes of a contiguous tensor from a regular file; returns their number.

tensor  in memory of a CPU or GPU: a numpy array, a torch tensor, a beeline.Memory, anything with DLPack
offset  of the first byte in the file; the file must hold all bytes of the tensor from there
variant  automatic, or for comparison user, pinned or double_buffered (docs/files.md)
access  automatic; direct: past the page cache; buffered: through it
block_bytes, blocks_in_flight  of the system calls; 0: a measured default
deadline_s  longest time without progress in seconds; None: BEELINE_DEADLINE_S
progress  called as progress(bytes_moved, all_bytes), about ten times a second and at the end

Blocks without Python's lock; Ctrl-C ends it. Waits for torch's current stream of the tensor's GPU first; work of other
streams must be over. Raises InvalidArgumentError for a file that is not there, may not be read, is no regular file or
too short, before anything is touched.)";

constexpr const char* write_doc = R"(Writes the bytes of a contiguous tensor to a regular file; returns their number.

The file is made if it does not exist, extended if it is too short, and kept outside the range. The parameters are those
of `read_file`.

durable  returns when the data are on the storage (fsync)

Raises NoResourceError if there is no room, before anything is touched. After a failure the file has its former length,
and one that was made is removed, unless others have it open or have written to it (docs/files.md).)";

}  // namespace

void bind_files(nb::module_& module) {
  using Path = std::filesystem::path;
  using Seconds = std::optional<double>;
  module.def(
      "read_file",
      [](const Path& path, const nb::object& tensor, std::uint64_t offset, const std::string& variant,
         const std::string& access, std::size_t block_bytes, unsigned blocks_in_flight, Seconds deadline_s,
         const nb::object& progress) {
        return read_tensor(path, tensor,
                           {offset, variant, access, block_bytes, blocks_in_flight, deadline_s, progress});
      },
      nb::arg("path"), nb::arg("tensor"), nb::kw_only(), nb::arg("offset") = 0, nb::arg("variant") = "automatic",
      nb::arg("access") = "automatic", nb::arg("block_bytes") = 0, nb::arg("blocks_in_flight") = 0,
      nb::arg("deadline_s") = nb::none(), nb::arg("progress") = nb::none(), read_doc);
  module.def(
      "write_file",
      [](const Path& path, const nb::object& tensor, std::uint64_t offset, const std::string& variant,
         const std::string& access, std::size_t block_bytes, unsigned blocks_in_flight, Seconds deadline_s,
         const nb::object& progress, bool durable) {
        return write_tensor(path, tensor,
                            {offset, variant, access, block_bytes, blocks_in_flight, deadline_s, progress}, durable);
      },
      nb::arg("path"), nb::arg("tensor"), nb::kw_only(), nb::arg("offset") = 0, nb::arg("variant") = "automatic",
      nb::arg("access") = "automatic", nb::arg("block_bytes") = 0, nb::arg("blocks_in_flight") = 0,
      nb::arg("deadline_s") = nb::none(), nb::arg("progress") = nb::none(), nb::arg("durable") = false, write_doc);
  module.def("_file_support", [] {
    const hpe::FileSupport support = hpe::file_support();
    return nb::make_tuple(support.no_uring, support.no_gds);
  });
}

}  // namespace beeline::python
