// SPDX-License-Identifier: Apache-2.0
/// @file
/// Methods off, receive and both: the CPU launches the update of the boundary planes, then that of the bulk. Meanwhile
/// a second stream copies the boundary planes to the neighbours. They differ in the use of peer-to-peer access.
/// Source: seed 004, Heisenberg spin glass: P2P off, receive only (RX), and both (RX and TX).

#include "beeline/device/signal.hpp"
#include "common/launch_window.hpp"
#include "method.hpp"

namespace spin_glass {

namespace {

/// Which ends of a transfer are memory of the device: none (both ends in host memory), the receiver's, or both.
enum class PeerToPeer { off, receive, both };

struct UpdatePlanes {
  template <class Grid, class AnyRule>
  BEELINE_HOST_DEVICE void operator()(const Grid& grid, const beeline::Context&, const Lattice& lattice,
                                      unsigned colour, const Planes& planes, const AnyRule& rule) const {
    update_planes(grid, lattice, colour, planes, rule);
  }
};

template <PeerToPeer p2p>
class Host final : public Method {
 public:
  explicit Host(Domain& domain)
      : Method(domain), arrived_(world(), sides, beeline::Heap::pinned),
        sent_(world(), sides * plane_floats(), beeline::Heap::pinned),
        received_(world(), colours * sides * plane_floats(), beeline::Heap::pinned), copies_(world().make_stream()),
        boundary_done_(world().stream().make_event()), halos_done_(copies_->make_event()), window_(world()) {}

  void run(int sweeps, bool communicate) override {
    const std::uint32_t first = domain().take_sweeps(sweeps), last_half = 2 * static_cast<std::uint32_t>(sweeps);
    const std::uint64_t before = tag_;
    for (std::uint32_t half = 0; half < last_half; ++half) {
      const unsigned colour = half % 2;
      if (communicate && half > 0) await_planes(1 - colour, before + half);
      if (const Rule rule = rule_of(domain().model(), first + half / 2); rule.is_heat_bath)
        update(colour, rule);
      else
        update(colour, OverRelaxation{});
      if (communicate) send_planes(colour, before + half + 1);
      window_.advance();
    }
    if (communicate) {
      tag_ += last_half;
      await_planes(1, tag_);
    }
    world().synchronize(*copies_);
    world().synchronize();
  }

 private:
  [[nodiscard]] std::size_t plane_floats() const { return domain().lattice().offset(1); }

  /// Enqueues the update of one colour.
  template <class AnyRule>
  void update(unsigned colour, const AnyRule& rule) {
    launch(colour, domain().boundary(), rule);
    world().stream().record(*boundary_done_);
    if (domain().bulk().count > 0) launch(colour, domain().bulk(), rule);
  }
  template <class AnyRule>
  void launch(unsigned colour, const Planes& planes, const AnyRule& rule) {
    const Lattice& lattice = domain().lattice();
    const unsigned blocks = domain().template blocks<UpdatePlanes, Lattice, unsigned, Planes, AnyRule>(
        std::uint64_t{lattice.area()} * planes.count);
    beeline::launch(world(), {.blocks = blocks, .threads = block_threads}, UpdatePlanes{}, lattice, colour, planes,
                    rule);
  }

  void send_planes(unsigned colour, std::uint64_t tag) {
    copies_->wait_event(*boundary_done_);
    for (unsigned side = 0; side < sides; ++side) start_copy(colour, side);
    world().synchronize(*copies_);
    for (unsigned side = 0; side < sides; ++side)
      beeline::signal(beeline::Thread{}, world().host_context(), &arrived_.data()[opposite(side)], tag,
                      domain().edge(side).peer);
  }
  void start_copy(unsigned colour, unsigned side) {
    const Edge& edge = domain().edge(side);
    const Lattice& lattice = domain().lattice();
    float* const source = lattice.spins[colour] + lattice.offset(edge.mine);
    float* const staged = sent_.data() + side * plane_floats();
    float* const halo = p2p == PeerToPeer::off ? staging_of(colour, opposite(side))
                                               : lattice.spins[colour] + lattice.offset(edge.theirs);
    if (p2p != PeerToPeer::both) copies_->copy(staged, source, domain().plane_bytes());
    copies_->copy(world().at(halo, static_cast<int>(edge.peer)), p2p == PeerToPeer::both ? source : staged,
                  domain().plane_bytes());
  }
  [[nodiscard]] float* staging_of(unsigned colour, unsigned side) const {
    return received_.data() + (colour * sides + side) * plane_floats();
  }

  void await_planes(unsigned colour, std::uint64_t tag) {
    for (unsigned side = 0; side < sides; ++side) {
      const Edge& edge = domain().edge(side);
      const beeline::Status status = beeline::wait(beeline::Thread{}, world().host_context(), &arrived_.data()[side],
                                                   beeline::Compare::greater_equal, tag, edge.peer);
      apps::require_ok(world(), status, "waiting for a neighbour's plane");
      if (p2p == PeerToPeer::off)
        copies_->copy(domain().lattice().spins[colour] + domain().lattice().offset(edge.halo), staging_of(colour, side),
                      domain().plane_bytes());
    }
    if (p2p != PeerToPeer::off) return;
    copies_->record(*halos_done_);
    world().stream().wait_event(*halos_done_);
  }

  beeline::Signals arrived_;             ///< [sides]: number of the update whose plane has arrived, over all runs
  beeline::SymmetricArray<float> sent_;  ///< [sides, plane] in host memory
  /// [colours, sides, plane] in host memory. A neighbour fills it again two updates later, after a signal that this
  /// rank sends when its copies of the earlier planes have ended.
  beeline::SymmetricArray<float> received_;
  std::unique_ptr<beeline::Stream> copies_;
  std::unique_ptr<beeline::Event> boundary_done_, halos_done_;  ///< of the latest update
  apps::LaunchWindow window_;
  std::uint64_t tag_ = 0;
};

}  // namespace

MethodInfo off() {
  return MethodInfo::of<Host<PeerToPeer::off>>(
      {"off", "the CPU copies boundary planes by way of host memory of both ranks, during the bulk's update",
       "host/staged/sequential"});
}

MethodInfo receive() {
  return MethodInfo::of<Host<PeerToPeer::receive>>(
      {"receive", "as off, but from the sender's host memory straight into the neighbour's halo"});
}

MethodInfo both() {
  return MethodInfo::of<Host<PeerToPeer::both>>(
      {"both", "as off, but from lattice to lattice without host memory", "host/copy_engine/signal"});
}

}  // namespace spin_glass
