// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cmath>
#include <memory>
#include <tuple>
#include <utility>

#include "beeline/core/error.hpp"
#include "beeline/energy/gpu_state.hpp"
#include "beeline/energy/meter.hpp"
#include "bindings.hpp"

namespace nb = nanobind;

namespace beeline::python {

namespace {

using namespace energy;
using Number = std::optional<double>;
/// A sample: time in seconds, joules, watts, reason for missing values.
using Row = std::tuple<double, Number, Number, std::string>;

Kind kind_of(const std::string& text) {
  for (const Kind kind : {Kind::gpu, Kind::cpu, Kind::dram})
    if (text == name(kind)) return kind;
  throw Error(Status::invalid_argument, fmt::format("\"{}\" is no component; valid: gpu, cpu, dram", text));
}

ShortWindow policy(bool widen) { return widen ? ShortWindow::widen : ShortWindow::refuse; }

/// The energy between two times of a record, as a meter would have measured it.
Measured replay(const std::vector<std::pair<Component, std::vector<Row>>>& record, double begin_s, double end_s,
                bool widen) {
  const auto ns = [](double seconds) { return std::llround(seconds * 1e9); };
  Sources sources;
  for (const auto& [component, rows] : record) {
    std::vector<std::pair<std::int64_t, Reading>> readings;
    for (const auto& [time, joules, watts, reason] : rows) readings.push_back({ns(time), {joules, watts, reason}});
    sources.push_back(replay_source(component, std::move(readings)));
  }
  std::int64_t now = ns(begin_s);
  Meter meter(std::move(sources), {[&] { return now; }, [&](std::int64_t time) { now += time; }});
  const Meter::Window window = meter.start();
  now = std::max(now, static_cast<std::int64_t>(ns(end_s)));
  return meter.stop(window, policy(widen));
}

void bind_component(nb::module_& module) {
  nb::class_<Component>(module, "Component", "What a source counts.")
      .def(
          "__init__",
          [](Component* self, const std::string& kind, std::string called, std::string device, double tick_s,
             Number range_joules) {
            new (self) Component{.kind = kind_of(kind),
                                 .name = std::move(called),
                                 .device = std::move(device),
                                 .tick_ns = std::llround(tick_s * 1e9),
                                 .range_joules = range_joules};
          },
          nb::arg("kind"), nb::arg("name"), nb::arg("device") = "", nb::arg("tick_s") = 0.0,
          nb::arg("range_joules") = nb::none())
      .def_prop_ro(
          "kind", [](const Component& self) { return name(self.kind); }, "'gpu', 'cpu' or 'dram'.")
      .def_ro("name", &Component::name, "As gpu0; the kind alone where there is no source.")
      .def_ro("device", &Component::device, "A GPU's UUID, a powercap zone.")
      .def_prop_ro(
          "tick_s", [](const Component& self) { return static_cast<double>(self.tick_ns) / 1e9; },
          "How often the counter advances.")
      .def_ro("range_joules", &Component::range_joules, "Where the counter starts again from 0; None: it never does.");
}

void bind_results(nb::module_& module) {
  nb::class_<ComponentEnergy>(module, "ComponentEnergy", "The energy of one component in a window.")
      .def_ro("component", &ComponentEnergy::component)
      .def_ro("joules", &ComponentEnergy::joules, "None where they are not known: see `reason`.")
      .def_ro("watts", &ComponentEnergy::watts, "Average power.")
      .def_ro("error", &ComponentEnergy::error, "A bound, as a share of the joules.")
      .def_ro("seconds", &ComponentEnergy::seconds, "Of the window that the joules belong to.")
      .def_ro("reason", &ComponentEnergy::reason, "Why there are no joules.")
      .def_ro("notice", &ComponentEnergy::notice, "What was done to the window.");
  nb::class_<Measured>(module, "Measured", "What a window held.")
      .def_ro("seconds", &Measured::seconds)
      .def_ro("components", &Measured::components)
      .def_prop_ro(
          "cpu_seconds", [](const Measured& self) { return self.cpu.process_seconds; },
          "CPU time of this process and of its children that ended.")
      .def_prop_ro(
          "machine_cpu_seconds", [](const Measured& self) { return self.cpu.machine_seconds; },
          "CPU time of all CPUs; None where the kernel does not show it.")
      .def_prop_ro(
          "sleep_seconds", [](const Measured& self) { return self.cpu.sleep_seconds; },
          "Time in each sleep state, summed over CPUs; empty where the kernel shows none.")
      .def_prop_ro(
          "cpu_reason", [](const Measured& self) { return self.cpu.reason; },
          "Why something of the CPUs' time is missing.")
      .def(
          "joules",
          [](const Measured& self, const std::optional<std::string>& kind) {
            return kind ? self.joules(kind_of(*kind)) : self.joules();
          },
          nb::arg("kind") = nb::none(),
          "Of one kind ('gpu', 'cpu', 'dram'), or of all that are known. None where a component's joules are missing.");
  nb::class_<Sample>(module, "Sample", "One point of a component's power over time.")
      .def_ro("component", &Sample::component, "Index in `Meter.components`.")
      .def_prop_ro(
          "time_s", [](const Sample& self) { return static_cast<double>(self.time_ns) / 1e9; },
          "Since the meter was made.")
      .def_ro("joules", &Sample::joules, "Counted since the meter was made.")
      .def_ro("watts", &Sample::watts, "As the device tells it, otherwise the counter's slope.")
      .def_ro("reason", &Sample::reason, "Why joules are missing.");
}

void bind_meter(nb::module_& module) {
  using Unlocked = nb::call_guard<nb::gil_scoped_release>;
  nb::class_<Meter::Window>(module, "Window", "The beginning of a measurement, made by `Meter.start`.");
  nb::class_<Meter>(module, "Meter", R"(Meters GPUs by NVML, CPU packages and DRAM by RAPL.

A kind without a source has a component that says why. Any thread may call; a process may have several.)")
      .def(
          "__init__",
          [](Meter* self, const std::vector<std::string>& gpus, const std::string& powercap) {
            new (self) Meter(machine_sources(gpus, powercap));
          },
          nb::kw_only(), nb::arg("gpus") = std::vector<std::string>{}, nb::arg("powercap") = "",
          R"(gpus      UUIDs; empty: all that NVML knows
powercap  the folder of the kernel's energy counters; empty: BEELINE_POWERCAP)")
      .def_prop_ro("components", &Meter::components)
      .def("start", &Meter::start, Unlocked(),
           "Blocks until every counter has ticked, 100 ms with GPUs; the work may begin then. Windows may overlap.")
      .def(
          "stop", [](Meter& self, const Meter::Window& window, bool widen) { return self.stop(window, policy(widen)); },
          nb::arg("window"), nb::kw_only(), nb::arg("widen") = false, Unlocked(),
          R"(Ends the window now, and blocks until every counter has ticked once more.

widen  joules with an error of over 2 % are those up to the next tick, with a notice; otherwise they are None)")
      .def(
          "sample_every", [](Meter& self, double seconds) { self.sample_every(std::llround(seconds * 1e9)); },
          nb::arg("seconds"), "Reads all counters in a thread, from now on.")
      .def("take_samples", &Meter::take_samples, "The samples since the last call.")
      .def_prop_ro("dropped_samples", &Meter::dropped_samples,
                   "How many were dropped because they were not taken in time.")
      .def_prop_ro("sampling_seconds", &Meter::sampling_seconds, "CPU time of the sampling thread.");
}

}  // namespace

void bind_energy(nb::module_& module) {
  bind_component(module);
  bind_results(module);
  bind_meter(module);
  module.def("_replay", &replay, nb::arg("record"), nb::arg("begin_s"), nb::arg("end_s"), nb::arg("widen"),
             "The energy between two times of a record: for each component its readings.");
  module.def(
      "_gpu_state",
      [](const std::string& uuid) {
        nb::dict state;
        if (const auto found = gpu_state(uuid)) {
          state["name"] = found->name;
          state["driver"] = found->driver;
          state["sm_clock_mhz"] = found->sm_clock_mhz;
          state["memory_clock_mhz"] = found->memory_clock_mhz;
          state["temperature_celsius"] = found->temperature_celsius;
        }
        return state;
      },
      nb::arg("uuid"), "A GPU's name, driver, clocks and temperature; empty where NVML does not know it.");
}

}  // namespace beeline::python
