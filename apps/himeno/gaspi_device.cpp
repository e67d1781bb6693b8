// SPDX-License-Identifier: Apache-2.0
/// @file
/// Method 8: as `in_kernel`, by GASPI's device library. Kernels name planes by segment and offset, and planes are
/// announced by notifications, which are reset. The two pressure buffers are segments; as they take turns, each
/// notification is used in every second iteration. The last block of a section sends it with gpu_write_notify; the last
/// block of a side, which knows that all its blocks have waited, first resets the side's notifications.
/// Source: seed 000 section 5.8.1, listing 5.6.

#include <algorithm>

#include "beeline/gaspi/device.hpp"
#include "beeline/gaspi/world_endpoint.hpp"
#include "common/last_block.hpp"
#include "update_and_send.hpp"

namespace himeno {

namespace {

namespace gaspi = beeline::gaspi;

constexpr unsigned max_gaspi_sections = 16;
constexpr std::uint32_t gaspi_queues = 4;

/// Transfer of outermost planes, in sections of whole tiles.
struct GaspiSections {
  gaspi::EndpointTable segments;
  std::uint32_t* finished;  ///< [sides][max_gaspi_sections]: tiles of the section that are computed
  std::uint32_t* waited;    ///< [sides]: tiles of the side that are computed, so that their blocks have waited
  std::uint32_t* failed;    ///< the first status of this rank's calls that is not ok; they have no other record
  unsigned count, tiles;    ///< sections of a plane; tiles of each section but the last

  /// Waits for every section.
  template <class BlockGroup>
  [[nodiscard]] BEELINE_HOST_DEVICE beeline::Status await(const BlockGroup& block, const beeline::Context& ctx,
                                                          const Work& work, const Edge&, unsigned,
                                                          unsigned side) const {
    const gaspi::EndpointView endpoint(ctx, segments);
    const std::uint32_t segment = segment_of(work.step.iteration);
    beeline::Status status = beeline::Status::ok;
    for (unsigned i = block.thread_rank(); i < count && status == beeline::Status::ok; i += block.size())
      status = wait_for_notification(beeline::Thread{}, endpoint, segment, id_of(side, i));
    return note(block, beeline::agree(block, status));
  }

  /// Counts the tile. The last of the side resets the notifications; the last of its section sends the section.
  template <class BlockGroup>
  BEELINE_HOST_DEVICE void hand_over(const BlockGroup& block, const beeline::Context& ctx, const Work& work,
                                     const Edge& edge, unsigned tile, unsigned side) const {
    const gaspi::EndpointView endpoint(ctx, segments);
    if (work.step.needs_halos() && apps::is_last(block, &waited[side], work.tiling.tiles))
      reset(block, endpoint, segment_of(work.step.iteration), side);
    const unsigned section = tile / tiles, first_tile = section * tiles;
    const unsigned rest = work.tiling.tiles - first_tile, here = rest < tiles ? rest : tiles;
    if (!apps::is_last(block, &finished[side * max_gaspi_sections + section], here)) return;
    const Work::Range range = work.range(first_tile, here);
    const std::uint32_t segment = segment_of(work.step.iteration + 1);
    static_cast<void>(
        note(block, gpu_write_notify(block, endpoint, {segment, bytes_to(edge.mine + range.first)}, edge.peer,
                                     {segment, bytes_to(edge.theirs + range.first)}, bytes_to(range.count),
                                     {id_of(opposite(side), section), 1}, section % gaspi_queues)));
  }

 private:
  [[nodiscard]] BEELINE_HOST_DEVICE static std::uint32_t segment_of(int iteration) {
    return static_cast<std::uint32_t>(iteration % 2);
  }
  [[nodiscard]] BEELINE_HOST_DEVICE static std::uint32_t id_of(unsigned side, unsigned section) {
    return side * max_gaspi_sections + section;
  }
  [[nodiscard]] BEELINE_HOST_DEVICE static std::uint64_t bytes_to(std::ptrdiff_t cells) {
    return static_cast<std::uint64_t>(cells) * sizeof(float);
  }
  template <class BlockGroup>
  BEELINE_HOST_DEVICE void reset(const BlockGroup& block, const gaspi::EndpointView& endpoint, std::uint32_t segment,
                                 unsigned side) const {
    beeline::Status status = beeline::Status::ok;
    for (unsigned i = block.thread_rank(); i < count && status == beeline::Status::ok; i += block.size())
      status = gaspi::notify_reset(beeline::Thread{}, endpoint, segment, id_of(side, i));
    // Synchronizes: the reset comes before this block sends what makes the neighbour notify again.
    static_cast<void>(note(block, beeline::agree(block, status)));
  }
  template <class BlockGroup>
  BEELINE_HOST_DEVICE beeline::Status note(const BlockGroup& block, beeline::Status status) const {
    if (status != beeline::Status::ok && block.thread_rank() == 0 && *failed == 0)
      *failed = static_cast<std::uint32_t>(status);
    return status;
  }
};

class GaspiDevice final : public OneKernelAnIteration<GaspiSections> {
 public:
  explicit GaspiDevice(Domain& domain)
      : OneKernelAnIteration(domain), endpoint_(world(), {2, sides * max_gaspi_sections, gaspi_queues}),
        finished_(world(), sides * max_gaspi_sections), waited_(world(), sides), failed_(world(), 1) {
    endpoint_.set(0, domain.fields().pressure(0), domain.pressure_bytes());
    endpoint_.set(1, domain.fields().pressure(1), domain.pressure_bytes());
    endpoint_.publish();
    constexpr std::size_t section_bytes = 32768;
    const auto wanted = static_cast<unsigned>(domain.plane_bytes() / section_bytes);
    const unsigned all = tiling().tiles, at_most = std::min(std::clamp(wanted, 1u, max_gaspi_sections), all);
    const unsigned tiles = (all + at_most - 1) / at_most;
    set_handover(
        {endpoint_.table(), finished_.data(), waited_.data(), failed_.data(), (all + tiles - 1) / tiles, tiles});
  }

  void iterate(int iterations, bool communicate) override {
    // No rank waits for the planes of the last iteration.
    if (communicate) endpoint_.reset_flags();
    OneKernelAnIteration::iterate(iterations, communicate);
    std::uint32_t failed = 0;
    world().copy(&failed, failed_.data(), sizeof failed);
    apps::require_ok(world(), static_cast<beeline::Status>(failed), "a call of GASPI's device library");
  }

 private:
  gaspi::WorldEndpoint endpoint_;
  beeline::SymmetricArray<std::uint32_t> finished_, waited_, failed_;
};

}  // namespace

MethodInfo gaspi_device() {
  return MethodInfo::of<GaspiDevice>(
      {"gaspi_device", "as in_kernel, by GASPI's device library: segments, offsets, notifications"});
}

}  // namespace himeno
